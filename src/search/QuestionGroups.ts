/**
 * Groups questions by meaning. The algorithm is greedy and visits questions in an order that depends on the questions
 * only, so the result does not depend on the input order. Each question joins the most similar group if the similarity
 * is high enough. When all groups are known, each question is assigned once more among the groups with several members.
 * Cost grows with questions × groups; the caller bounds both.
 */
import { hash } from "./Hash.ts"
import { terms, withoutJoiners, word } from "./Tokenizer.ts"

/** A distinct question, asked once or several times. */
export interface AskedQuestion<A> {
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
/** Weight of word parts relative to whole words. Parts match inflected and compound forms. */
const partWeight = 0.3
const partLength = 4
/** Share of the words in the similarity of two questions that both have a vector. */
const wordsShare = 0.6
/** Minimum similarity of a question and the centre of its group, with vectors and by words alone. */
const minSimilarity = 0.42
const minWordSimilarity = 0.31

/** A key that ignores case, whitespace and punctuation. */
const keyOf = (text: string): string =>
  Array.from(withoutJoiners(text).normalize("NFKC").toLowerCase().matchAll(word), ([found]) => found).join(
    " "
  ) || text.trim()

const dot = (one: Float32Array, other: Float32Array): number => {
  let sum = 0
  for (let place = 0; place < one.length; place++) sum += (one[place] ?? 0) * (other[place] ?? 0)
  return sum
}

const toUnit = (sums: Float32Array): Float32Array => {
  const norm = Math.sqrt(dot(sums, sums))
  return norm === 0 ? sums.slice() : sums.map((value) => value / norm)
}

/**
 * Weights of words from 0 to 1. A word that few questions contain weighs more: "Do you offer vouchers?" and "Do you offer
 * rentals?" share what most questions share. The cube root keeps some weight for a word that all questions contain, which
 * is the topic where all ask about one thing.
 */
const termWeights = (questions: ReadonlyArray<ReadonlyArray<string>>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const found of questions)
    for (const term of new Set(found)) counts.set(term, (counts.get(term) ?? 0) + 1)
  const highest = Math.log1p(questions.length)
  return new Map(
    [...counts].map(([term, count]) => [term, Math.cbrt(Math.log1p(questions.length / count) / highest)])
  )
}

/** A unit vector of hashed words and word parts; zero for a text without words. */
const wordVector = (found: ReadonlyArray<string>, weights: ReadonlyMap<string, number>): Float32Array => {
  const sums = new Float32Array(wordDimensions)
  const add = (feature: string, weight: number) => {
    const code = hash(feature)
    const place = code % wordDimensions
    sums[place] = (sums[place] ?? 0) + (code & 0x40000000 ? weight : -weight)
  }
  for (const term of found) {
    const weight = weights.get(term) ?? 1
    add(term, weight)
    for (let from = 0; from + partLength <= term.length; from++)
      add(`~${term.slice(from, from + partLength)}`, partWeight * weight)
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

/** At least 1 for questions of the same group. */
const similarity = (one: Point, other: Point): number => {
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

/** Merges identical questions, step by step. The most frequent ones come first. */
function* mergeIdentical<A>(
  asked: ReadonlyArray<AskedQuestion<A>>
): Generator<void, ReadonlyArray<Question<A>>> {
  const byKey = new Map<string, Array<AskedQuestion<A>>>()
  for (const one of asked) {
    const key = keyOf(one.text)
    const same = byKey.get(key)
    if (same === undefined) byKey.set(key, [one])
    else same.push(one)
    yield
  }
  const questions: Array<Omit<Question<A>, "words"> & { readonly terms: ReadonlyArray<string> }> = []
  for (const [key, same] of byKey) {
    const ordered = same.toSorted((one, other) => compare(one.text, other.text))
    const text = ordered[0]?.text ?? ""
    const vector = ordered.find((one) => one.vector !== null)?.vector ?? null
    questions.push({ key, text, values: same.map(({ value }) => value), terms: terms(text), vector })
    yield
  }
  const weights = termWeights(questions.map((question) => question.terms))
  const weighted: Array<Question<A>> = []
  for (const question of questions) {
    weighted.push({ ...question, words: wordVector(question.terms, weights) })
    yield
  }
  return weighted.toSorted(
    (one, other) => other.values.length - one.values.length || compare(one.key, other.key)
  )
}

/** The index of the most similar centre, the first among equals, or -1. */
const nearest = (centres: ReadonlyArray<Centre>, point: Point): number => {
  let best = -1
  let bestSimilarity = 1
  for (const [place, centre] of centres.entries()) {
    const similar = similarity(centre.point, point)
    if (similar >= bestSimilarity && (best === -1 || similar > bestSimilarity)) {
      best = place
      bestSimilarity = similar
    }
  }
  return best
}

const groupOf = <A>(members: ReadonlyArray<Question<A>>, centre: Centre): Group<A> => {
  let title = ""
  let bestSimilarity = -Infinity
  for (const member of members) {
    const similar = similarity(centre.point, member)
    if (similar > bestSimilarity) {
      title = member.text
      bestSimilarity = similar
    }
  }
  return { title, values: members.flatMap(({ values }) => values) }
}

/**
 * Groups `asked` step by step, so that the caller may yield the thread between two steps. A step examines one question.
 * The generator returns the groups in the order in which they were created.
 */
export function* groupQuestions<A>(
  asked: ReadonlyArray<AskedQuestion<A>>
): Generator<void, ReadonlyArray<Group<A>>> {
  const questions = yield* mergeIdentical(asked)
  const candidates: Array<Centre> = []
  for (const question of questions) {
    const place = nearest(candidates, question)
    const centre = candidates[place] ?? new Centre()
    if (place === -1) candidates.push(centre)
    centre.add(question)
    yield
  }
  // A group of one did not match any earlier question, and no later question matched it.
  const shared = candidates.filter(({ size }) => size > 1)
  const members = new Map<number, Array<Question<A>>>()
  const singles: Array<Array<Question<A>>> = []
  for (const question of questions) {
    const place = nearest(shared, question)
    const group = members.get(place)
    if (place === -1) singles.push([question])
    else if (group === undefined) members.set(place, [question])
    else group.push(question)
    yield
  }
  const groups: Array<Group<A>> = []
  for (const group of [...members.values(), ...singles]) {
    const centre = new Centre()
    for (const member of group) centre.add(member)
    groups.push(groupOf(group, centre))
    yield
  }
  return groups
}
