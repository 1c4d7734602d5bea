/**
 * Between linkedom and its `css-select` in the bundle of the parser's thread (see build.mjs).
 *
 * - Extracting an article runs some two hundred selectors, the same for every page, and linkedom parses and compiles
 *   each one again: a third of a page's cost. Compiled selectors are cached here.
 * - linkedom does not tell css-select how to find the element before another one, so a selector such as `h2 + p` would
 *   read all siblings of each element: quadratic time.
 */
import { compile as compileSelector } from "css-select"

const adapters = new WeakMap()

const withPreviousSibling = (adapter) => {
  let extended = adapters.get(adapter)
  if (extended === undefined) {
    extended = { ...adapter, prevElementSibling: (element) => element.previousElementSibling }
    adapters.set(adapter, extended)
  }
  return extended
}

const compileNew = (selector, options) =>
  compileSelector(selector, { ...options, adapter: withPreviousSibling(options.adapter) })

/** Pages can contain selectors of their own. */
const maxCached = 500
const maxSelectorLength = 10_000

/**
 * A selector compiled from a condition on an ancestor, or from most pseudo-classes, caches results for its document.
 * Selectors with neither depend only on the element that they are tested against.
 */
const dependsOnDocument = /[^\s>+~,][ \t\n\r\f]+[^\s>+~,]|:(?!not\()/
/** One selector of a comma-separated list. A comma in quotes is part of it. */
const listEntry = /(?:[^,"']|"[^"]*"|'[^']*')+/g

/** Divides a list into the cacheable selectors and the rest. Either may be empty. */
const splitCacheable = (selector) => {
  if (!dependsOnDocument.test(selector)) return { cacheable: selector, rest: "" }
  const parts = selector.match(listEntry) ?? []
  if (/[(\\]/.test(selector) || parts.join(",") !== selector) return { cacheable: "", rest: selector }
  return {
    cacheable: parts.filter((part) => !dependsOnDocument.test(part)).join(","),
    rest: parts.filter((part) => dependsOnDocument.test(part)).join(",")
  }
}

const cache = { html: new Map(), xml: new Map() }

const compileCacheable = (selector, options) => {
  const parts = splitCacheable(selector)
  return {
    ...parts,
    test: parts.cacheable === "" ? undefined : compileNew(parts.cacheable, options)
  }
}

/** Replaces `compile` of css-select for linkedom's calls. */
export const compile = (selector, options) => {
  if (options.context !== undefined || selector.length > maxSelectorLength)
    return compileNew(selector, options)
  const cached = options.xmlMode ? cache.xml : cache.html
  let entry = cached.get(selector)
  if (entry === undefined) {
    entry = compileCacheable(selector, options)
    if (cached.size < maxCached) cached.set(selector, entry)
  }
  const { rest, test } = entry
  if (rest === "") return test
  const testRest = compileNew(rest, options)
  return test === undefined ? testRest : (element) => test(element) || testRest(element)
}

/** Replaces `is` of css-select. */
export const is = (element, selector, options) => compile(selector, options)(element)
