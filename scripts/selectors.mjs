/**
 * A cache between linkedom and its `css-select` in the bundle of the parser's thread (see build.mjs). Extracting an
 * article runs some two hundred selectors, the same for every page, and linkedom parses and compiles each one again:
 * a third of a page's cost. Compiled selectors are cached here.
 */
import { compile as compileNew } from "css-select"

/** Maximum number of cached selectors, because pages can contain their own. */
const mostKept = 500
const longestKept = 10_000

/**
 * A selector compiled from a condition on an ancestor, or from most pseudo-classes, caches results for its document.
 * Selectors with neither depend only on the element that they are tested against.
 */
const remembers = /[^\s>+~,][ \t\n\r\f]+[^\s>+~,]|:(?!not\()/
/** One selector of a list. A comma in quotes is part of it. */
const one = /(?:[^,"']|"[^"]*"|'[^']*')+/g

/** The cacheable selectors and the rest. Either may be empty. */
const split = (selector) => {
  if (!remembers.test(selector)) return { lasting: selector, rest: "" }
  const parts = selector.match(one) ?? []
  if (/[(\\]/.test(selector) || parts.join(",") !== selector) return { lasting: "", rest: selector }
  return {
    lasting: parts.filter((part) => !remembers.test(part)).join(","),
    rest: parts.filter((part) => remembers.test(part)).join(",")
  }
}

const kept = { html: new Map(), xml: new Map() }

const keep = (selector, options) => {
  const made = split(selector)
  return {
    ...made,
    test: made.lasting === "" ? undefined : compileNew(made.lasting, options)
  }
}

/** As `compile` of css-select, for linkedom's calls. */
export const compile = (selector, options) => {
  if (options.context !== undefined || selector.length > longestKept) return compileNew(selector, options)
  const known = options.xmlMode ? kept.xml : kept.html
  let found = known.get(selector)
  if (found === undefined) {
    found = keep(selector, options)
    if (known.size < mostKept) known.set(selector, found)
  }
  const { rest, test } = found
  if (rest === "") return test
  const fresh = compileNew(rest, options)
  return test === undefined ? fresh : (element) => test(element) || fresh(element)
}

/** As `is` of css-select. */
export const is = (element, selector, options) => compile(selector, options)(element)
