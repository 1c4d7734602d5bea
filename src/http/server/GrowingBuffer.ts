/** A growing buffer for bytes that arrive in pieces. One large buffer takes much less memory than many small ones. */
export class GrowingBuffer {
  readonly #maxBytes: number
  #memory: Uint8Array = new Uint8Array(0)
  #length = 0

  /** The buffer never exceeds `maxBytes`. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get length(): number {
    return this.#length
  }

  /** Size of the buffer after adding `more` bytes. It doubles, so that each byte is copied only a few times. */
  sizeWith(more: number): number {
    const needed = this.#length + more
    return needed <= this.#memory.length
      ? this.#memory.length
      : Math.min(this.#maxBytes, Math.max(needed, 2 * this.#length))
  }

  /** The first piece is not copied, and must not be changed afterwards. */
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

  /** Returns all bytes and empties the buffer. */
  take(): Uint8Array {
    const { bytes } = this
    this.#memory = new Uint8Array(0)
    this.#length = 0
    return bytes
  }
}
