"""What a reader waits for at first: each sample is a new Python."""


class Start:
    rounds = repeat = 3
    warmup_time = 0

    def timeraw_import_d2lps(self):
        return 'import d2lps'

    def timeraw_import_mxnet(self):
        return 'import mxnet', 'import d2lps'

    def timeraw_cluster_with_server(self):
        return 'c = d2lps.Cluster(2, 1)', 'import d2lps'


class StartWithoutServers:
    rounds = repeat = 3
    warmup_time = 0

    def setup(self):
        import d2lps
        if not hasattr(d2lps, 'join_peers'):
            raise NotImplementedError('clusters need servers yet')

    def timeraw_cluster(self):
        return 'c = d2lps.Cluster(2, 0)', 'import d2lps'
