"""What nbgrader has to know of everybody on the hub, see jupyterhub_config."""
c = get_config()  # noqa: F821 (Jupyter's)
c.CourseDirectory.course_id = 'd2lps'
# Made once, so that all can write to it:
# sudo mkdir -p /srv/nbgrader/exchange && sudo chmod 777 /srv/nbgrader/exchange
c.Exchange.root = '/srv/nbgrader/exchange'
