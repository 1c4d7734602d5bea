/**
 * What the words and vectors of one agent's chunks rank by, in memory: no text, so that what a search returns is read from
 * the database and never older than the search. All methods are synchronous; a change made between two awaits is seen
 * whole.
 */
import { Postings } from "../../search/Bm25.ts"
import type { Ranked } from "../../search/Fusion.ts"
import { eachTerm } from "../../search/Tokenizer.ts"
import { Vectors } from "../../search/vectors/Vectors.ts"
import { rank, type RankQuery } from "./InProcessRank.ts"

export interface IndexedChunk {
  readonly id: string
  readonly sourceId: string
  readonly generation: string
  readonly tsv: string
  readonly length: number
  /** Little-endian float32, or null. */
  readonly embedding: Uint8Array | null
}

export const generationKey = (sourceId: string, generation: string): string => `${generation}:${sourceId}`

/** Bytes of an id, its map entry, its source and its place in the arrays. */
const slotBytes = 200

export class InProcessIndex {
  /** The agent's index version whose chunks are all in here. */
  version = 0
  /** False while its vectors are still being read: until then words alone decide. */
  complete = true
  readonly #postings = new Postings()
  readonly #vectors: Vectors
  readonly #slots = new Map<string, number>()
  #ids: Array<string> = []
  #generations: Array<string> = []
  #sources: Array<string> = []

  /** The profile of its vectors; another profile needs an index of its own. */
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

  /** Drops the chunks of every generation that is not in `live` (see {@link generationKey}), and those that are `stale`. */
  retain(live: ReadonlySet<string>, stale: ReadonlySet<string> = new Set()): void {
    let next = 0
    const moved = Int32Array.from(this.#generations, (key, slot) =>
      live.has(key) && !stale.has(this.#ids[slot] ?? "") ? next++ : -1
    )
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
    if (this.size === 0) return []
    const lexical = this.#postings.scores(query.forms)
    return rank(query, {
      vectors: this.#vectors,
      ids: this.#ids,
      lexical,
      slots: this.#within(query.sources)
    })
  }

  /** The slots of `sources`, ascending. */
  #within(sources: ReadonlySet<string> | undefined): Int32Array {
    const slots = new Int32Array(this.size)
    let count = 0
    for (let slot = 0; slot < slots.length; slot++) {
      if (sources === undefined || sources.has(this.#sources[slot] ?? "")) slots[count++] = slot
    }
    return slots.subarray(0, count)
  }
}
