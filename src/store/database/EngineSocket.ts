/** A socket for the driver that connects to the embedded engine instead of a server. */
import { Duplex } from "node:stream"
import { isError } from "../../domain/ThrownErrors.ts"
import type { Engine } from "./Engine.ts"

/** Types (first bytes) of messages that get an answer: startup, Sync, Query, Flush, and those of a COPY. */
const answeredTypes: ReadonlySet<number | undefined> = new Set([
  0,
  ..."SQHdcf".split("").map((letter) => letter.charCodeAt(0))
])
const terminate = "X".charCodeAt(0)

export class EngineSocket extends Duplex {
  readonly #engine: Engine
  /** The messages of an incomplete request. The engine gets a whole request at once. */
  #pending: Array<Uint8Array> = []

  constructor(engine: Engine) {
    super()
    this.#engine = engine
  }

  connect(): this {
    process.nextTick(() => this.emit("connect"))
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {}

  override _write(message: Uint8Array, _: BufferEncoding, done: () => void): void {
    this.#receive(message)
    done()
  }

  override _writev(messages: Array<{ readonly chunk: Uint8Array }>, done: () => void): void {
    for (const { chunk } of messages) this.#receive(chunk)
    done()
  }

  override _final(done: () => void): void {
    this.push(null)
    done()
  }

  /** The driver writes one message of the protocol at a time. */
  #receive(message: Uint8Array) {
    if (message[0] === terminate) return
    this.#pending.push(message)
    if (!answeredTypes.has(message[0])) return
    const request = Buffer.concat(this.#pending)
    this.#pending = []
    this.#engine.ask(request).then(
      (answer) => {
        if (answer.length > 0 && !this.destroyed)
          this.push(Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength))
      },
      (error: unknown) => void this.destroy(isError(error) ? error : new Error(String(error)))
    )
  }
}
