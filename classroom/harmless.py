def whole(text):
    """A text that a file can have: halves of letters become '?'.

    JSON can tell a half, such as of an emoji, which is no letter.
    """
    return text.encode(errors='replace').decode()
