/**
 * What the words and vectors of one agent's chunks rank by, in memory: no text, so that what a search returns is read from
 * the database and never older than the search. All methods are synchronous; a change made between two awaits is seen
 * whole.
 */
import { Postings } from "../../search/Bm25.ts"
import { Best, fuse, type Ranked } from "../../search/Fusion.ts"
import { eachTerm } from "../../search/Tokenizer.ts"
import { Vectors } from "../../search/Vectors.ts"

/** Up to this many chunks every cosine is computed; beyond, those that signs and words promise something of. */
const exhaustive = 4_096
/** Most promising chunks whose exact score is always computed. */
const leastReranked = 300
/** Most chunks whose exact score is computed, however close their estimates lie. */
const mostReranked = 3_000
/** How far from the exact cosine an estimate may be: about four standard deviations, more for fewer signs. */
const margin = (dimensions: number): number => Math.max(0.2, 6 / Math.sqrt(dimensions))
/** Estimated scores are sorted into this many classes. */
const classes = 2_048

export interface IndexedChunk {
  readonly id: string
  readonly sourceId: string
  readonly generation: string
  readonly tsv: string
  readonly length: number
  /** Little-endian float32, or null. */
  readonly embedding: Uint8Array | null
}

export interface RankQuery {
  readonly terms: ReadonlyMap<string, number>
  readonly vector: Float32Array | undefined
  readonly lexicalWeight: number
  readonly topK: number
  readonly minScore: number
  /** Only chunks of these sources; all when left out. */
  readonly sources?: ReadonlySet<string> | undefined
}

export const generationKey = (sourceId: string, generation: string): string => `${generation}:${sourceId}`

/** Bytes of an id, its map entry, its source and its place in the arrays. */
const slotBytes = 200

export class InProcessIndex {
  /** The agent's index version whose chunks are all in here. */
  version = 0
  readonly #postings = new Postings()
  readonly #vectors: Vectors
  readonly #slots = new Map<string, number>()
  #ids: Array<string> = []
  #generations: Array<string> = []
  #sources: Array<string> = []

  /** Whose vectors it has; those of another profile need an index of their own. */
  readonly profile: string

  /** Without an embedder for the profile `dimensions` is 0, and no vector is kept. */
  constructor(dimensions: number, profile = "") {
    this.profile = profile
    this.#vectors = new Vectors(dimensions)
  }

  /** False when the agent's vectors cannot be compared with any query: words alone decide. */
  get comparable(): boolean {
    return this.#vectors.dimensions > 0
  }

  get size(): number {
    return this.#ids.length
  }

  get hasVectors(): boolean {
    return this.#vectors.count > 0
  }

  /** Approximate memory, in bytes. */
  get bytes(): number {
    return 4_096 + this.#ids.length * slotBytes + this.#postings.bytes + this.#vectors.bytes
  }

  has(id: string): boolean {
    return this.#slots.has(id)
  }

  /** Says that `more` chunks will come. */
  expect(more: number): void {
    this.#vectors.expect(this.size + more)
  }

  /** Adds a chunk; one that is there stays as it is. */
  add(chunk: IndexedChunk): void {
    if (this.#slots.has(chunk.id)) return
    const slot = this.size
    this.#slots.set(chunk.id, slot)
    this.#ids.push(chunk.id)
    this.#generations.push(generationKey(chunk.sourceId, chunk.generation))
    this.#sources.push(chunk.sourceId)
    this.#postings.add(chunk.length)
    eachTerm(chunk.tsv, (term, frequency) => this.#postings.count(term, frequency))
    if (chunk.embedding !== null && this.comparable) this.#vectors.set(slot, chunk.embedding)
  }

  /** Sets the vector of a chunk that is there. */
  setVector(id: string, embedding: Uint8Array): void {
    const slot = this.#slots.get(id)
    if (slot !== undefined && this.comparable) this.#vectors.set(slot, embedding)
  }

  /** Drops the chunks of every generation that is not in `live` (see {@link generationKey}). */
  retain(live: ReadonlySet<string>): void {
    let next = 0
    const moved = Int32Array.from(this.#generations, (key) => (live.has(key) ? next++ : -1))
    if (next === this.size) return
    const stays = (_: string, slot: number) => (moved[slot] ?? -1) >= 0
    this.#ids = this.#ids.filter(stays)
    this.#generations = this.#generations.filter(stays)
    this.#sources = this.#sources.filter(stays)
    this.#slots.clear()
    for (const [slot, id] of this.#ids.entries()) this.#slots.set(id, slot)
    this.#postings.retain(moved)
    this.#vectors.retain(moved)
  }

  /** The best chunks, best first; all of them fully scored by words and by meaning. */
  rank(query: RankQuery): ReadonlyArray<Ranked> {
    const best = new Best(query.topK, query.minScore)
    if (this.size === 0) return best.all
    const lexical = this.#postings.scores(query.terms)
    const { vector } = query
    const slots = this.#within(query.sources)
    if (vector === undefined || !this.hasVectors || slots.length <= exhaustive) {
      for (const slot of slots) this.#offer(best, query, lexical, slot)
    } else this.#rankPromising(best, query, lexical, vector, slots)
    return best.all
  }

  /** The slots of `sources`, ascending. */
  #within(sources: ReadonlySet<string> | undefined): Int32Array {
    const all = Int32Array.from({ length: this.size }, (_, slot) => slot)
    return sources === undefined ? all : all.filter((slot) => sources.has(this.#sources[slot] ?? ""))
  }

  #offer(best: Best, query: RankQuery, lexical: Float64Array, slot: number): void {
    const words = lexical[slot] ?? 0
    const { vector } = query
    const cosine =
      vector !== undefined && this.#vectors.has(slot) ? this.#vectors.cosine(slot, vector) : undefined
    if (words > 0 || cosine !== undefined) {
      best.offer(this.#ids[slot] ?? "", fuse(query.lexicalWeight, words, cosine))
    }
  }

  /** In the order of their estimated scores, until what is left cannot reach the best any more. */
  #rankPromising(
    best: Best,
    query: RankQuery,
    lexical: Float64Array,
    vector: Float32Array,
    slots: Int32Array
  ): void {
    const { lexicalWeight } = query
    const estimates = this.#vectors.estimates(vector, this.size)
    const { ordered, classOf } = byEstimate(slots, estimates, lexical, lexicalWeight)
    const slack = (1 - lexicalWeight) * margin(this.#vectors.dimensions) + 1 / classes
    for (let done = 0; done < ordered.length && done < mostReranked; done++) {
      const slot = ordered[done] ?? 0
      const estimate = (classOf[slot] ?? 0) / classes
      if (done >= leastReranked && estimate + slack < best.bar) return
      this.#offer(best, query, lexical, slot)
    }
  }
}

/** `slots` by descending class of their estimated score: a counting sort, linear in their number. */
const byEstimate = (
  slots: Int32Array,
  estimates: Float64Array,
  lexical: Float64Array,
  lexicalWeight: number
) => {
  const classOf = new Uint16Array(lexical.length)
  const starts = new Int32Array(classes + 2)
  for (const slot of slots) {
    const words = lexical[slot] ?? 0
    const cosine = estimates[slot] ?? Number.NaN
    const score = Number.isNaN(cosine)
      ? words
      : lexicalWeight * words + (1 - lexicalWeight) * Math.max(0, cosine)
    const kind = Math.min(classes, Math.floor(score * classes))
    classOf[slot] = kind
    starts[classes - kind + 1] = (starts[classes - kind + 1] ?? 0) + 1
  }
  for (let kind = 1; kind < starts.length; kind++)
    starts[kind] = (starts[kind] ?? 0) + (starts[kind - 1] ?? 0)
  const ordered = new Int32Array(slots.length)
  for (const slot of slots) {
    const kind = classes - (classOf[slot] ?? 0)
    const place = starts[kind] ?? 0
    ordered[place] = slot
    starts[kind] = place + 1
  }
  return { ordered, classOf } as const
}
