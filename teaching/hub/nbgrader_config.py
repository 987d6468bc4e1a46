"""What nbgrader has to know of everybody on the hub, see jupyterhub_config."""
c = get_config()  # noqa: F821 (Jupyter's)
c.CourseDirectory.course_id = 'd2lps'
# Made once, so that all can write to it, and nobody can rename what others
# have there:
# sudo mkdir -p /srv/nbgrader/exchange
# sudo chmod 1777 /srv/nbgrader/exchange
c.Exchange.root = '/srv/nbgrader/exchange'
