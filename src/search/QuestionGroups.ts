/**
 * Groups questions by meaning. The algorithm is greedy and visits questions in an order that depends on the questions
 * only, so the result does not depend on the input order. Each question joins the most similar group if the similarity
 * is high enough. When all groups are known, each question is assigned once more among the groups with several members.
 * Cost grows with questions × groups; the caller bounds both.
 */
import { terms, word } from "./Tokenizer.ts"

/** A distinct question, asked once or several times. */
export interface Asked<A> {
  readonly text: string
  /** A unit vector, or null. A question without a vector is compared by its words. */
  readonly vector: Float32Array | null
  readonly value: A
}

export interface Group<A> {
  /** The text of the member that is most similar to all others. */
  readonly title: string
  readonly values: ReadonlyArray<A>
}

/** Dimensions of a word vector. */
const wordDimensions = 256
/** Weight of word parts relative to whole words. Word parts match inflected and compound forms. */
const partWeight = 0.3
const partLength = 4
/** Weight of the word similarity where meaning is known too. */
const wordsShare = 0.5
/** Minimum similarity of a question to the centre of its group: by meaning and words, and by words alone. */
const minSimilarity = 0.38
const minWordSimilarity = 0.34

/** A key that ignores case, whitespace and punctuation. */
const keyOf = (text: string): string =>
  Array.from(text.normalize("NFKC").toLowerCase().matchAll(word), ([found]) => found).join(" ") || text.trim()

const hash = (text: string): number => {
  let code = 0x811c9dc5
  for (let place = 0; place < text.length; place++)
    code = Math.imul(code ^ text.charCodeAt(place), 0x01000193)
  code = Math.imul(code ^ (code >>> 15), 0x2c1b3c6d)
  return (code ^ (code >>> 12)) >>> 0
}

const dot = (one: Float32Array, other: Float32Array): number => {
  let sum = 0
  for (let place = 0; place < one.length; place++) sum += (one[place] ?? 0) * (other[place] ?? 0)
  return sum
}

const toUnit = (sums: Float32Array): Float32Array => {
  const norm = Math.sqrt(dot(sums, sums))
  return norm === 0 ? sums.slice() : sums.map((value) => value / norm)
}

/** The unit vector of the words of a text; zero where it has none. */
const wordVector = (text: string): Float32Array => {
  const sums = new Float32Array(wordDimensions)
  const add = (feature: string, weight: number) => {
    const code = hash(feature)
    const place = code % wordDimensions
    sums[place] = (sums[place] ?? 0) + (code & 0x40000000 ? weight : -weight)
  }
  for (const term of terms(text)) {
    add(term, 1)
    for (let from = 0; from + partLength <= term.length; from++)
      add(`~${term.slice(from, from + partLength)}`, partWeight)
  }
  return toUnit(sums)
}

interface Point {
  readonly words: Float32Array
  readonly vector: Float32Array | null
}

interface Question<A> extends Point {
  readonly key: string
  readonly text: string
  readonly values: ReadonlyArray<A>
}

/** Similarity divided by its threshold: at least 1 for questions of one group. */
const likeness = (one: Point, other: Point): number => {
  const words = dot(one.words, other.words)
  return one.vector === null || other.vector === null
    ? words / minWordSimilarity
    : (wordsShare * words + (1 - wordsShare) * dot(one.vector, other.vector)) / minSimilarity
}

/** The sums of the members' vectors, and the centre computed from them. */
class Centre {
  private readonly words = new Float32Array(wordDimensions)
  private vector: Float32Array | null = null
  point: Point = { words: this.words, vector: null }
  size = 0

  add(point: Point): void {
    this.size++
    for (let place = 0; place < wordDimensions; place++)
      this.words[place] = (this.words[place] ?? 0) + (point.words[place] ?? 0)
    if (point.vector !== null) {
      const sums = (this.vector ??= new Float32Array(point.vector.length))
      for (let place = 0; place < sums.length; place++)
        sums[place] = (sums[place] ?? 0) + (point.vector[place] ?? 0)
    }
    this.point = { words: toUnit(this.words), vector: this.vector === null ? null : toUnit(this.vector) }
  }
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

/** Merges identical questions. Those that were asked most often come first. */
const distinct = <A>(asked: ReadonlyArray<Asked<A>>): ReadonlyArray<Question<A>> => {
  const byKey = new Map<string, Array<Asked<A>>>()
  for (const one of asked) {
    const key = keyOf(one.text)
    const same = byKey.get(key)
    if (same === undefined) byKey.set(key, [one])
    else same.push(one)
  }
  const questions = [...byKey].map(([key, same]): Question<A> => {
    const ordered = same.toSorted((one, other) => compare(one.text, other.text))
    const text = ordered[0]?.text ?? ""
    const vector = ordered.find((one) => one.vector !== null)?.vector ?? null
    return { key, text, values: same.map(({ value }) => value), words: wordVector(text), vector }
  })
  return questions.toSorted(
    (one, other) => other.values.length - one.values.length || compare(one.key, other.key)
  )
}

/** The index of the most similar centre, the first among equals, or -1. */
const nearest = (centres: ReadonlyArray<Centre>, point: Point): number => {
  let best = -1
  let bestLikeness = 1
  for (const [place, centre] of centres.entries()) {
    const like = likeness(centre.point, point)
    if (like >= bestLikeness && (best === -1 || like > bestLikeness)) {
      best = place
      bestLikeness = like
    }
  }
  return best
}

const groupOf = <A>(members: ReadonlyArray<Question<A>>, centre: Centre): Group<A> => {
  let title = ""
  let bestLikeness = -Infinity
  for (const member of members) {
    const like = likeness(centre.point, member)
    if (like > bestLikeness) {
      title = member.text
      bestLikeness = like
    }
  }
  return { title, values: members.flatMap(({ values }) => values) }
}

/**
 * Groups `asked` step by step, so that the caller may yield the thread between two steps. The generator returns the
 * groups in the order in which they were created.
 */
export function* grouped<A>(asked: ReadonlyArray<Asked<A>>): Generator<void, ReadonlyArray<Group<A>>> {
  const questions = distinct(asked)
  yield
  const begun: Array<Centre> = []
  for (const question of questions) {
    const place = nearest(begun, question)
    const centre = begun[place] ?? new Centre()
    if (place === -1) begun.push(centre)
    centre.add(question)
    yield
  }
  // A group of one did not match any earlier question, and no later question matched it.
  const shared = begun.filter(({ size }) => size > 1)
  const members = new Map<number, Array<Question<A>>>()
  const alone: Array<Array<Question<A>>> = []
  for (const question of questions) {
    const place = nearest(shared, question)
    const group = members.get(place)
    if (place === -1) alone.push([question])
    else if (group === undefined) members.set(place, [question])
    else group.push(question)
    yield
  }
  return [...members.values(), ...alone].map((group) => {
    const centre = new Centre()
    for (const member of group) centre.add(member)
    return groupOf(group, centre)
  })
}
