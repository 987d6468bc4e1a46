"""What readers play with: controls above a picture that follows."""
