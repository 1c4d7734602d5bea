/** The documents of the benchmarks, deterministic, and questions that are all different. */
const vocabulary = (
  "account address agent alert archive article audit avatar backup balance banner battery billing browser budget button cable " +
  "calendar campaign card carrier cart catalog channel charge checkout color comment contact contract coupon courier currency " +
  "customer dashboard deadline delivery deposit device discount document domain draft editor email event export feedback field " +
  "filter firmware folder format gateway gift group history holiday image import index insurance inventory invoice item journal " +
  "keyboard label language layout ledger license limit locale login machine manual margin meeting member memory menu message " +
  "meter mirror mobile module network notice number office offer order outage owner package page parcel partner password " +
  "payment period permission phone photo plan platform plugin pocket policy portal postage price printer profile project proof " +
  "quality quota rate receipt record refund region release reminder renewal report reseller reset return review role route rule " +
  "sample schedule screen season seat section sensor server session setting shipment shop signal site size statement status " +
  "stock storage store summary supplier support switch table tariff tax team template ticket token tracking trial update " +
  "upgrade upload user vacation value version video visitor voucher wallet warehouse warranty webhook weight widget window"
).split(" ")
const fillers =
  "the of to in for with on from by when after before and or if that this your our every any must can".split(
    " "
  )

/** Numbers from 0 to 1, the same for the same seed (Mulberry32). */
export const random = (seed) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

const pick = (next, list) => list[Math.floor(next() * list.length)]

/** About `length` characters about a few things. */
export const passage = (seed, length = 700) => {
  const next = random(seed)
  const topic = Array.from({ length: 5 }, () => pick(next, vocabulary))
  let text = `Topic${seed}`
  while (text.length < length) {
    const kind = next()
    text += ` ${kind < 0.4 ? pick(next, fillers) : pick(next, kind < 0.65 ? topic : vocabulary)}`
    if (next() < 0.08) text += "."
  }
  return `${text}.`
}

const passagesPerDocument = 10

/** Documents of ten passages each; `text` makes the passage of a number. */
export const documents = (passages, { first = 0, text = passage } = {}) =>
  Array.from({ length: Math.ceil(passages / passagesPerDocument) }, (_, place) => ({
    title: `Article ${first / passagesPerDocument + place}`,
    uri: `https://help.example.com/${first / passagesPerDocument + place}`,
    passages: Array.from(
      { length: Math.min(passagesPerDocument, passages - place * passagesPerDocument) },
      (_, part) => text(first + place * passagesPerDocument + part)
    )
  }))

/** A question that has not been asked before, about one of `passages`. */
export const question = (number, passages) => {
  const next = random(number + 77_777)
  return `How does the ${pick(next, vocabulary)} of case${number} change the ${pick(next, vocabulary)} in topic${Math.floor(next() * passages)}?`
}

/** One of some 40,000 words, some of them common, as in a language. */
const pickRareWord = (next) => {
  const place = Math.floor(next() ** 2 * vocabulary.length ** 2)
  return vocabulary[place % vocabulary.length] + vocabulary[Math.floor(place / vocabulary.length)]
}

/** Short passages have two halves, each from this many. */
export const halves = 1_000

/** Ten words; the first halves come first. */
export const half = (place) => {
  const next = random(place + 1)
  return Array.from({ length: 10 }, () => pickRareWord(next)).join(" ")
}

/** A short passage. A million different ones can be generated (see growth.mjs). */
export const line = (number) =>
  `topic${number} ${half(number % halves)} ${half(halves + ((Math.floor(number / halves) + 7 * number) % halves))}`

/** A question about `line`s. */
export const lineQuestion = (number, lines) => {
  const next = random(number + 99_999)
  const lineNumber = Math.floor(next() * lines)
  const words = line(lineNumber).split(" ")
  return `${pickRareWord(next)} case${number} ${pick(next, words)} ${pick(next, words)} ${pick(next, words)}`
}
