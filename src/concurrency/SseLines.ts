/**
 * Parses server-sent events from bytes. Each byte is read once, however the bytes are split; the parser of
 * @effect/experimental rescans its buffer for every line. Only `data` is needed for the providers' formats.
 */

const space = 32

export class SseLines {
  readonly #limit: number
  readonly #decoder = new TextDecoder()
  /** The incomplete line. */
  #line = ""
  /** The data of the incomplete event. */
  #data: string | null = null
  /** Whether the last text ended in CR. A following LF is part of the same line break. */
  #afterReturn = false

  /** `limit` is the maximum length of an event, in UTF-16 units. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** The data of each event that `bytes` completes, or null when an event exceeds the limit. */
  push(bytes: Uint8Array): ReadonlyArray<string> | null {
    return this.#split(this.#decoder.decode(bytes, { stream: true }))
  }

  /** The data of an event without a blank line at the end of the stream, or null. */
  end(): string | null {
    this.#split(this.#decoder.decode())
    if (this.#line !== "") this.#field(this.#line)
    return this.#data
  }

  #split(text: string): ReadonlyArray<string> | null {
    const events: Array<string> = []
    let from = this.#afterReturn && text.startsWith("\n") ? 1 : 0
    if (text !== "") this.#afterReturn = text.endsWith("\r")
    let lineFeed = text.indexOf("\n", from)
    let carriageReturn = text.indexOf("\r", from)
    while (lineFeed >= 0 || carriageReturn >= 0) {
      const end =
        lineFeed < 0 || (carriageReturn >= 0 && carriageReturn < lineFeed) ? carriageReturn : lineFeed
      const event = this.#endLine(this.#line + text.slice(from, end))
      if (event !== null) events.push(event)
      from = end === carriageReturn && lineFeed === end + 1 ? end + 2 : end + 1
      if (lineFeed >= 0 && lineFeed < from) lineFeed = text.indexOf("\n", from)
      if (carriageReturn >= 0 && carriageReturn < from) carriageReturn = text.indexOf("\r", from)
    }
    this.#line += from === 0 ? text : text.slice(from)
    return this.#line.length + (this.#data?.length ?? 0) > this.#limit ? null : events
  }

  #endLine(line: string): string | null {
    this.#line = ""
    if (line !== "") {
      this.#field(line)
      return null
    }
    const event = this.#data
    this.#data = null
    return event
  }

  #field(line: string): void {
    if (line !== "data" && !line.startsWith("data:")) return
    const value = line.slice(line.charCodeAt(5) === space ? 6 : 5)
    this.#data = this.#data === null ? value : `${this.#data}\n${value}`
  }
}
