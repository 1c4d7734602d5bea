/**
 * Bodies of web-standard responses. A host passes a request and gets a `Response`, whose body must end when the
 * request's signal aborts or the service closes. Effect's own conversion of a stream ends only when its reader cancels
 * it.
 */
import * as Effect from "effect/Effect"

/** Status of the response to an aborted request. */
export const clientClosedRequestStatus = 499

/** Bytes that are buffered before the reader asks for them. Most turns fit, so they end without a reader. */
const readAheadBytes = 65_536

/** Time-out for reading bodies to their ends when the service closes. What they still send is in memory already. */
const readToEndTimeout = "1 second"

class Body {
  readonly stream: ReadableStream<Uint8Array>
  readonly #source: ReadableStreamDefaultReader<Uint8Array>
  /** Keeps the request alive: a signal derived from another one follows it only while its request exists. */
  readonly #request: Request
  /** Called when the source has been read to its end, and when the body has ended. */
  readonly #onDone: (body: Body) => void
  /** Null once the stream has ended. */
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #exhausted = false
  #reading: Promise<void> | null = null

  constructor(source: ReadableStream<Uint8Array>, request: Request, onDone: (body: Body) => void) {
    this.#source = source.getReader()
    this.#request = request
    this.#onDone = onDone
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          request.signal.addEventListener("abort", this.#abort, { once: true })
        },
        pull: () => this.#pull(),
        cancel: (reason) => {
          this.#end()
          return this.#source.cancel(reason)
        }
      },
      new ByteLengthQueuingStrategy({ highWaterMark: readAheadBytes })
    )
  }

  readonly #abort = () => this.fail(this.#request.signal.reason)

  #end(): void {
    this.#controller = null
    this.#request.signal.removeEventListener("abort", this.#abort)
    this.#onDone(this)
  }

  /** Fails the reader with `reason` at once and interrupts the source. */
  fail(reason: unknown): void {
    const controller = this.#controller
    if (controller === null) return
    this.#end()
    controller.error(reason)
    this.#source.cancel(reason).catch(() => undefined)
  }

  /** Reads the source to its end, with or without a reader. */
  async readToEnd(): Promise<void> {
    while (this.#controller !== null && !this.#exhausted) await this.#readOnce()
  }

  /** Ends the stream only after its last piece was read, because the body can be aborted until then. */
  async #pull(): Promise<void> {
    if (!this.#exhausted) await this.#readOnce()
    const controller = this.#controller
    if (!this.#exhausted || controller?.desiredSize !== readAheadBytes) return
    this.#end()
    controller.close()
  }

  /** The next piece. Concurrent callers share one read. */
  #readOnce(): Promise<void> {
    this.#reading ??= this.#readSource().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #readSource(): Promise<void> {
    try {
      const { done, value } = await this.#source.read()
      if (value !== undefined) this.#controller?.enqueue(value)
      if (!done) return
      this.#exhausted = true
      this.#onDone(this)
    } catch (cause) {
      this.fail(cause)
    }
  }
}

/**
 * The response to a request that has been aborted. The producer of `body` starts with the first read and is cancelled.
 */
const discardedResponse = (body: ReadableStream<Uint8Array>) => {
  const source = body.getReader()
  const end = () => source.cancel()
  source
    .read()
    .then(end, end)
    .catch(() => undefined)
  return new Response(null, { status: clientClosedRequestStatus })
}

export interface WebBodies {
  /** `response` to `request`. Its body fails with the reason of the request's signal when that is aborted. */
  readonly of: (request: Request, response: Response) => Response
  /**
   * Ends all bodies. Each is read to its end and kept for its reader; one that does not end in time fails with
   * `reason`.
   */
  readonly end: (reason: unknown) => Effect.Effect<void>
}

export const make = (): WebBodies => {
  const open = new Set<Body>()
  return {
    of: (request, response) => {
      // A body with a length is complete in memory.
      if (response.body === null || response.headers.has("content-length")) return response
      if (request.signal.aborted) return discardedResponse(response.body)
      const body = new Body(response.body, request, (done) => open.delete(done))
      open.add(body)
      return new Response(body.stream, response)
    },
    end: (reason) =>
      Effect.forEach(
        open,
        (body) =>
          Effect.timeoutTo(
            Effect.promise(() => body.readToEnd()),
            { duration: readToEndTimeout, onSuccess: () => undefined, onTimeout: () => body.fail(reason) }
          ),
        { concurrency: "unbounded", discard: true }
      )
  }
}
