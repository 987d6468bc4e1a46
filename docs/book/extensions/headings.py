"""Headings have the addresses that JupyterLab gives them."""


def slug(title):
    return title.replace(' ', '-')


def setup(app):
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
