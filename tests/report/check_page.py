#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_page.py DOM DIR SECTION...

Prints what is wrong with a page of tools/html-report.sh, one fault in a line. DOM: the page as a browser has drawn it.
DIR: where it lies, for its links. SECTION: ids that it has to have.
"""
import collections
import html.parser
import json
import os
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.body = {}
        self.ids = collections.Counter()
        self.links = []
        self.plots = []         # (id of the section, attributes)
        self.text = {}          # of each section
        self.data = ""
        self.section = None
        self.script = None

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if "id" in a:
            self.ids[a["id"]] += 1
        if tag == "body":
            self.body = a
        elif tag == "section":
            self.section = a.get("id")
            self.text[self.section] = ""
        elif tag == "canvas":
            self.plots.append((self.section, a))
        elif tag == "a":
            self.links.append(a.get("href", ""))
        elif tag in ("script", "style"):
            self.script = a.get("id", tag)

    def handle_endtag(self, tag):
        if tag == "section":
            self.section = None
        elif tag in ("script", "style"):
            self.script = None

    def handle_data(self, data):
        if self.script == "data":
            self.data += data
        elif self.script is None and self.section:
            self.text[self.section] += data + " "


def faults(page, directory, sections):
    drawn = page.body.get("data-drawn")
    if drawn is None:
        yield "the page was not drawn"
    elif int(drawn) != len(page.plots):
        yield f"{drawn} plots were drawn, the page has {len(page.plots)}"
    if page.body.get("data-errors", ""):
        yield f"errors: {page.body['data-errors']}"
    for section, canvas in page.plots:
        if int(canvas.get("data-points", 0)) == 0:
            yield f"plot {section} has no data"
        if int(canvas.get("width", 0)) < 100 or int(canvas.get("height", 0)) < 100:
            yield f"plot {section} is {canvas.get('width')} by {canvas.get('height')} pixels"
    for name, n in page.ids.items():
        if n > 1:
            yield f"two elements have the id {name}"
    for name in sections:
        if name not in page.text:
            yield f"there is no section {name}"
    for link in page.links:
        if link.startswith("#"):
            if urllib.parse.unquote(link[1:]) not in page.ids:
                yield f"the link {link} leads to nothing"
        elif not os.path.exists(os.path.join(directory, urllib.parse.unquote(link))):
            yield f"the link {link} leads to no file"
    for section, text in page.text.items():
        for word in re.findall(r"\b(undefined|NaN|null|Infinity|\[object)", text):
            yield f"section {section} shows {word}"
    for i, run in enumerate(json.loads(page.data).get("runs", [])):
        text = page.text.get(f"verdict-{i + 1}" if i else "verdict", "")
        for nic in run["events"]["nics"] if run["events"] else []:
            if nic["messages"] and f" {nic['messages']:,} " not in f" {text} ":
                yield f"the verdict does not show the messages of {nic['nic']}: {nic['messages']:,}"


def main():
    page = Page()
    with open(sys.argv[1], encoding="utf-8") as dom:
        page.feed(dom.read())
    for fault in faults(page, sys.argv[2], sys.argv[3:]):
        print(fault)


main()
