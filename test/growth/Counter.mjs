/**
 * What instrumented code calls (test/growth/Instrument.ts): it adds up steps. A step is an entered function, a turn of a
 * loop, or an element or character that a built-in function has to look at. Slices of strings cost one, as they do in V8.
 */

const anchored = (regex) => regex.source.startsWith("^") && !regex.multiline

/** Characters that a regular expression looks at, were it linear: test/growth/Regexes.test.ts asks whether it is. */
const sought = (regex, text, from, match) => {
  if (match !== null && match !== undefined) return match.index - from + match[0].length + 1
  return anchored(regex) ? 1 : Math.max(0, text.length - from) + 1
}

const whole = (text) => text.length
const scanned = (text, [needle, from = 0], found) =>
  (found < 0 ? Math.max(0, text.length - from) : found - from) + String(needle).length
const replaced = (text, [pattern]) => (pattern instanceof RegExp && anchored(pattern) ? 1 : text.length)

const ofStrings = {
  indexOf: scanned,
  lastIndexOf: (text, _, found) => text.length - Math.max(0, found),
  includes: (text, [needle]) => scanned(text, [needle], text.indexOf(needle)),
  startsWith: (_, [needle]) => needle.length,
  endsWith: (_, [needle]) => needle.length,
  localeCompare: whole,
  match: replaced,
  matchAll: replaced,
  search: replaced,
  replace: replaced,
  replaceAll: whole,
  split: (_, __, parts) => parts.length,
  repeat: (_, __, made) => made.length,
  padStart: (_, __, made) => made.length,
  padEnd: (_, __, made) => made.length,
  normalize: whole,
  toLowerCase: whole,
  toUpperCase: whole,
  toLocaleLowerCase: whole,
  isWellFormed: whole,
  toWellFormed: whole,
  trim: (text, _, made) => text.length - made.length,
  trimStart: (text, _, made) => text.length - made.length,
  trimEnd: (text, _, made) => text.length - made.length
}
// What splits at a text looks at all of it, however few parts there are.
ofStrings.split = (text, [, limit], parts) =>
  limit === undefined ? text.length : parts.reduce((sum, part) => sum + part.length + 1, 0)

const made = (_, __, result) => result.length
const found = (list, _, place) => (place < 0 ? list.length : place + 1)
const ofLists = {
  indexOf: found,
  lastIndexOf: (list) => list.length,
  includes: (list, [item]) => found(list, [], list.indexOf(item)),
  join: made,
  concat: made,
  slice: made,
  splice: whole,
  unshift: whole,
  shift: (list) => (list.length > 16_384 ? list.length : 1),
  reverse: whole,
  fill: whole,
  flat: made,
  flatMap: made,
  sort: whole,
  toSorted: whole,
  toReversed: whole,
  toSpliced: whole,
  with: whole,
  copyWithin: whole,
  set: (_, [given]) => given.length ?? 0,
  toString: (_, __, result) => result.length
}
const ofRegexes = {
  exec: () => 0,
  test: (regex, [text]) => (anchored(regex) ? 1 : String(text).length + 1)
}
const given = (_, [first]) => first?.length ?? first?.size ?? 0
const ofStatics = new Map([
  [
    Object,
    {
      entries: made,
      keys: made,
      values: made,
      fromEntries: given,
      assign: (_, [, ...rest]) => rest.reduce((sum, each) => sum + Object.keys(each ?? {}).length, 0)
    }
  ],
  [Array, { from: made, of: made }],
  [JSON, { parse: given, stringify: (_, __, text) => text?.length ?? 0 }],
  [Buffer, { concat: made, from: given }],
  [String, { fromCharCode: made, fromCodePoint: made, raw: made }]
])

const costsOf = (target) => {
  if (typeof target === "string") return ofStrings
  if (typeof target !== "object" && typeof target !== "function") return undefined
  if (target === null) return undefined
  if (Array.isArray(target) || ArrayBuffer.isView(target)) return ofLists
  if (target instanceof RegExp) return ofRegexes
  if (target instanceof TextDecoder) return { decode: given }
  if (target instanceof TextEncoder) return { encode: given }
  // One by one they are looked through, and written into the address that they belong to.
  if (target instanceof URLSearchParams) return { set: (all) => all.size }
  if (target instanceof Intl.Segmenter) return { segment: given }
  return ofStatics.get(target)
}

const counter = {
  steps: 0,
  /** Calls the method, and counts what it costs. */
  call(target, name, ...args) {
    const costs = costsOf(target) ?? {}
    const cost = Object.hasOwn(costs, name) ? costs[name] : undefined
    // The match of a global expression begins where the last one ended.
    const from = target instanceof RegExp && (target.global || target.sticky) ? target.lastIndex : 0
    const result = target[name](...args)
    if (cost === undefined) return result
    counter.steps += 1
    if (target instanceof RegExp && name === "exec")
      counter.steps += sought(target, String(args[0]), from, result)
    else counter.steps += cost(target, args, result)
    return result
  },
  /** What `new` has made of something that it had to look at. */
  made(value) {
    counter.steps += value.size ?? value.byteLength ?? value.length ?? value.href?.length ?? 0
    return value
  },
  /** Elements or members that are copied. */
  spread(value) {
    if (value === null || value === undefined) return value
    if (typeof value === "string" || Array.isArray(value) || ArrayBuffer.isView(value))
      counter.steps += value.length
    else if (typeof value.size === "number") counter.steps += value.size
    return value
  },
  spreadObject(value) {
    if (typeof value === "object" && value !== null) counter.steps += Object.keys(value).length
    return value
  }
}
export default counter
