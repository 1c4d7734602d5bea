/**
 * Stands between linkedom and its `css-select` where the parser's thread is bundled (see build.mjs). Extracting an article asks
 * some two hundred questions of a page, the same of every page, and linkedom reads and compiles the selector each time:
 * a third of what a page costs. Here a compiled selector is kept.
 */
import { compile as compileNew } from "css-select"

/** Selectors that are kept; pages can name their own. */
const mostKept = 500
const longestKept = 10_000

/**
 * What is compiled from an ancestor's condition or from most pseudo-classes remembers answers of the document that it was made for.
 * Selectors with neither depend on nothing but the element that they are asked about.
 */
const remembers = /[^\s>+~,][ \t\n\r\f]+[^\s>+~,]|:(?!not\()/
/** One of a list: a comma in quotes belongs to it. */
const one = /(?:[^,"']|"[^"]*"|'[^']*')+/g

/** Those that may be kept, and the rest; either may be empty. */
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

/** As `compile` of css-select, for what linkedom asks. */
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
