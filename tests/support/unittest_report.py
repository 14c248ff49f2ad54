"""Runs a unittest program that packaging/run_tests.py can read: --gtest_output=xml:FILE writes a report in GoogleTest's form."""
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree


class _KeptResult(unittest.TextTestResult):
    """Also keeps every test, with what was wrong and why it was skipped."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cases = []

    def stopTest(self, test):
        bad = [text for failed, text in self.failures + self.errors if failed is test or getattr(failed, "test_case", None) is test]
        skipped = [reason for each, reason in self.skipped if each is test]
        self.cases.append((type(test).__name__, test._testMethodName, bad, skipped))
        super().stopTest(test)


def _write_xml(path, name, cases, seconds):
    root = ElementTree.Element("testsuites", time=f"{seconds:.3f}")
    suite = ElementTree.SubElement(root, "testsuite", name=name)
    for class_name, test_name, bad, skipped in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=class_name, name=test_name, status="run")
        for kind, texts in (("failure", bad), ("skipped", skipped)):
            for text in texts:
                ElementTree.SubElement(case, kind, message=text)
    ElementTree.ElementTree(root).write(path)


def main(name, arguments=None):
    """The exit status of all tests of the module __main__, with unittest's `arguments` (default: the command line's)."""
    words = sys.argv[1:] if arguments is None else arguments
    reports = [word.split(":", 1)[1] for word in words if word.startswith("--gtest_output=xml:")]
    words = [word for word in words if not word.startswith("--gtest_output=")]
    begin = time.monotonic()
    program = unittest.main(argv=[sys.argv[0], *words], exit=False,
                            testRunner=unittest.TextTestRunner(resultclass=_KeptResult))
    for path in reports:
        _write_xml(path, name, program.result.cases, time.monotonic() - begin)
    return 0 if program.result.wasSuccessful() else 1
