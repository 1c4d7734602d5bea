/**
 * Index of the words and vectors of one agent's chunks, in memory. It contains no text: the text of results is read
 * from the database and never older than the search. All methods are synchronous, so a change between two awaits is
 * atomic.
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
  /** Bytes of `StoredVector`, or null. */
  readonly embedding: Uint8Array | null
}

export const generationKey = (sourceId: string, generation: string): string => `${generation}:${sourceId}`

/** Approximate bytes of an id, its map entry, its source and its array entries. */
const slotBytes = 200

export class InProcessIndex {
  /** The agent's index version up to which all chunks are included. */
  version = 0
  /** False until its vectors are loaded. Until then only words decide. */
  complete = true
  /** True while its vectors are being loaded. */
  loading = false
  /** True from when an update drops chunks until it has read the new ones. It stays true if the update fails. */
  changing = false
  readonly #postings = new Postings()
  readonly #vectors: Vectors
  readonly #slots = new Map<string, number>()
  #ids: Array<string> = []
  #generations: Array<string> = []
  #sources: Array<string> = []

  /** The profile of its vectors. Another profile needs another index. */
  readonly profile: string

  /** Without an embedder for the profile `dimensions` is 0, and no vectors are stored. */
  constructor(dimensions: number, profile = "") {
    this.profile = profile
    this.#vectors = new Vectors(dimensions)
  }

  /** False when the agent's vectors cannot be compared with any query. Then only words decide. */
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

  /** The chunks without a vector. */
  get withoutVector(): ReadonlyArray<string> {
    return this.#ids.filter((_, slot) => !this.#vectors.has(slot))
  }

  has(id: string): boolean {
    return this.#slots.has(id)
  }

  /** Announces `more` chunks. */
  expect(more: number): void {
    this.#vectors.expect(this.size + more)
  }

  /** Adds a chunk. An existing one is not changed. */
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

  /** Sets the vector of an existing chunk. */
  setVector(id: string, embedding: Uint8Array): void {
    const slot = this.#slots.get(id)
    if (slot !== undefined && this.comparable) this.#vectors.set(slot, embedding)
  }

  /** Drops the chunks of every generation that is not in `live` (see {@link generationKey}), and those in `stale`. */
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

  /** The best chunks, best first, fully scored by words and meaning. */
  rank(query: RankQuery): ReadonlyArray<Ranked> {
    if (this.size === 0) return []
    const lexical = this.#postings.scores(query.words)
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
