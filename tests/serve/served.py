"""A class of cases with one site, its captures by the built-in plugins, and `holdfast serve` over them."""

import shutil
from pathlib import Path

from harness.case import Case
from harness.web import LocalSite

PLUGINS = Path(__file__).resolve().parents[2] / "deploy/plugins"


class Served(Case):
    SITE = None  # the handler of the site
    ENV = {}  # more settings of the server

    @classmethod
    def setUpClass(cls):
        cls.owner = cls("run")
        cls.web = LocalSite(cls.SITE)
        cls.place = cls.owner.place()
        shutil.rmtree(cls.place.plugins)
        cls.place.plugins.symlink_to(PLUGINS)
        cls.capture()
        process = cls.place.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0", **cls.ENV})
        cls.front = process.stdout.readline().split()[1]
        cls.rows = cls.place.run("list", "snapshots", "--json").records

    @classmethod
    def capture(cls):
        """Adds the pages of the site that the cases are about."""
        raise NotImplementedError

    @classmethod
    def tearDownClass(cls):
        cls.web.close()
        cls.owner.doCleanups()
