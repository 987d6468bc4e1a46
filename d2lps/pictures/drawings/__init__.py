"""What is drawn before it is coded."""
