/**
 * Index of the words and vectors of one agent's chunks, in memory. It contains no text: the text of results is read
 * from the database and never older than the search. Methods are synchronous, so a change between two awaits is atomic.
 * {@link InProcessIndex.retain} is the exception: it runs in steps, and excludes {@link InProcessIndex.exclusively}.
 */
import * as Effect from "effect/Effect"
import { inSlices } from "../../concurrency/InSlices.ts"
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
/** Slots that one step of dropping chunks renumbers. */
const slotsPerStep = 500

export class InProcessIndex {
  /** The agent's index version up to which all chunks are included. */
  version = 0
  /** False until its vectors are loaded. Until then only words decide. */
  complete = true
  /** True while its vectors are being loaded. */
  loading = false
  /** True from when an update drops chunks until it has read the new ones. It stays true if the update fails. */
  changing = false
  readonly #lock = Effect.unsafeMakeSemaphore(1)
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

  /** Reserves memory for the vectors of `more` chunks. */
  reserve(more: number): void {
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

  /** Runs `effect` while no chunks are being dropped. Searches check {@link InProcessIndex.changing} instead. */
  exclusively<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.#lock.withPermits(1)(effect)
  }

  /**
   * Drops the chunks of every generation that is not in `live` (see {@link generationKey}), and those in `stale`. Requests
   * are served between its steps. It is not interrupted, because the index cannot be used before it has ended.
   */
  retain(live: ReadonlySet<string>, stale: ReadonlySet<string> = new Set()): Effect.Effect<void> {
    return Effect.uninterruptible(this.exclusively(Effect.suspend(() => inSlices(this.#drop(live, stale)))))
  }

  *#drop(live: ReadonlySet<string>, stale: ReadonlySet<string>): Generator<void, void> {
    const newSlots = new Int32Array(this.size)
    let next = 0
    for (const [slot, key] of this.#generations.entries()) {
      if (slot % slotsPerStep === slotsPerStep - 1) yield
      newSlots[slot] = live.has(key) && !stale.has(this.#ids[slot] ?? "") ? next++ : -1
    }
    if (next === this.size) return
    for (const [id, slot] of this.#slots) {
      if (slot % slotsPerStep === slotsPerStep - 1) yield
      const to = newSlots[slot] ?? -1
      if (to < 0) this.#slots.delete(id)
      else this.#slots.set(id, to)
    }
    const isKept = (_: string, slot: number) => (newSlots[slot] ?? -1) >= 0
    this.#ids = this.#ids.filter(isKept)
    this.#generations = this.#generations.filter(isKept)
    this.#sources = this.#sources.filter(isKept)
    yield* this.#postings.retain(newSlots)
    yield* this.#vectors.retain(newSlots)
  }

  /** The best chunks, best first, fully scored by words and meaning. */
  rank(query: RankQuery): ReadonlyArray<Ranked> {
    if (this.size === 0) return []
    const lexical = this.#postings.scores(query.words)
    return rank(query, {
      vectors: this.#vectors,
      ids: this.#ids,
      lexical,
      slots: this.#slotsOf(query.sources)
    })
  }

  /** The slots of `sources`, ascending. */
  #slotsOf(sources: ReadonlySet<string> | undefined): Int32Array {
    const slots = new Int32Array(this.size)
    let count = 0
    for (let slot = 0; slot < slots.length; slot++) {
      if (sources === undefined || sources.has(this.#sources[slot] ?? "")) slots[count++] = slot
    }
    return slots.subarray(0, count)
  }
}
