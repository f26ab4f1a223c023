"""The documentation site in a real browser: pages, links, search, dark mode and narrow screens.

Usage: test_site.py BOOK, where BOOK is the folder that mdBook has written.
"""

import functools
import http.server
import sys
import threading
import unittest
from pathlib import Path
from urllib.parse import urljoin, urldefrag

from playwright.sync_api import sync_playwright

BOOK = Path(sys.argv.pop()).resolve()
CHROMIUM = "/usr/bin/chromium"
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        handler = functools.partial(Quiet, directory=str(BOOK))
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.address = f"http://127.0.0.1:{cls.server.server_port}/"
        cls.playwright = sync_playwright().start()
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=flags)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.shutdown()

    def open(self, path="", viewport=WIDE, **options):
        page = self.browser.new_context(viewport=viewport, **options).new_page()
        self.addCleanup(page.context.close)
        self.problems = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("requestfailed", lambda request: self.problems.append(request.url))
        page.on("response", lambda response: response.status >= 400 and self.problems.append(response.url))
        page.goto(self.address + path)
        return page

    def test_every_page_is_reached_by_links_and_no_link_is_broken(self):
        page = self.open()
        seen, waiting, broken = set(), [self.address], []
        anchors = {}
        wanted = []
        while waiting:
            address = waiting.pop()
            if address in seen:
                continue
            seen.add(address)
            response = page.goto(address, wait_until="domcontentloaded")
            if response is None or response.status >= 400:
                broken.append(address)
                continue
            anchors[address] = set(page.eval_on_selector_all("[id]", "all => all.map(one => one.id)"))
            for href in page.eval_on_selector_all("main a[href]", "all => all.map(one => one.getAttribute('href'))"):
                target, anchor = urldefrag(urljoin(address, href))
                if not target.startswith(self.address):
                    continue
                if anchor:
                    wanted.append((address, target, anchor))
                if target.endswith((".html", "/")):
                    waiting.append(target)
                elif not (BOOK / target.removeprefix(self.address)).is_file():
                    broken.append(f"{address} -> {target}")
            waiting += [
                urldefrag(urljoin(address, href))[0]
                for href in page.eval_on_selector_all(".sidebar a[href]", "all => all.map(one => one.getAttribute('href'))")
            ]
        broken += [f"{a} -> {t}#{anchor}" for a, t, anchor in wanted if anchor not in anchors.get(t, {anchor})]
        self.assertEqual(broken, [])
        self.assertGreater(len(seen), 120, "every rule has a page")
        self.assertEqual(self.problems, [])

    def test_search_finds_a_rule(self):
        page = self.open("docs/check.html")
        page.keyboard.press("/")
        page.locator("#mdbook-searchbar").click()
        page.keyboard.type("index-without-concurrently")
        result = page.locator("#mdbook-searchresults a").filter(has_text="index-without-concurrently")
        result.first.click()
        page.wait_for_url("**/rules/index-without-concurrently.html**")
        self.assertIn("index-without-concurrently", page.locator("main h1").first.inner_text())
        self.assertEqual(self.problems, [])

    def test_dark_mode_follows_the_system_and_the_menu(self):
        def background(page):
            return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

        light, dark = self.open(color_scheme="light"), self.open(color_scheme="dark")
        self.assertNotEqual(background(light), background(dark))
        before = background(light)
        light.locator("#mdbook-theme-toggle").first.click()
        light.locator("button.theme[id$=navy]").first.click()
        self.assertNotEqual(background(light), before)

    def test_narrow_screens_do_not_scroll_sideways(self):
        for path in ["", "docs/trace.html", "docs/configuration.html", "rules/index.html", "rules/set-not-null-scans-table.html"]:
            page = self.open(path, NARROW)
            width = page.evaluate("document.documentElement.scrollWidth")
            self.assertLessEqual(width, NARROW["width"], path or "index.html")


if __name__ == "__main__":
    unittest.main()
