/** Bytes that come in pieces, in one piece of memory that grows with them: many small buffers would take many times more. */
export class GrowingBuffer {
  readonly #maxBytes: number
  #memory: Uint8Array = new Uint8Array(0)
  #length = 0

  /** More than `maxBytes` are never added. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get length(): number {
    return this.#length
  }

  /** Bytes of memory that `more` bytes would take in all: it doubles, so that each byte is copied a few times at most. */
  sizeWith(more: number): number {
    const needed = this.#length + more
    return needed <= this.#memory.length
      ? this.#memory.length
      : Math.min(this.#maxBytes, Math.max(needed, 2 * this.#length))
  }

  /** The first piece is kept as it is, and must not be changed afterwards. */
  add(piece: Uint8Array): void {
    if (this.#length === 0) this.#memory = piece
    else {
      const size = this.sizeWith(piece.length)
      if (size > this.#memory.length) {
        const grown = new Uint8Array(size)
        grown.set(this.#memory.subarray(0, this.#length))
        this.#memory = grown
      }
      this.#memory.set(piece, this.#length)
    }
    this.#length += piece.length
  }

  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#length)
  }

  /** All that was added; nothing is left. */
  take(): Uint8Array {
    const { bytes } = this
    this.#memory = new Uint8Array(0)
    this.#length = 0
    return bytes
  }
}
