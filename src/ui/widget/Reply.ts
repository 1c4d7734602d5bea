/** Receives the stream of a turn. */
import { read, type Source, sourceOf } from "../EventStream.ts"

export interface Received {
  readonly reply: string
  readonly citations: ReadonlyArray<Source>
}

/** Milliseconds between two renderings of a streaming reply. Longer replies take longer to render. */
const drawEvery = (reply: string) => Math.max(40, reply.length / 100)

/**
 * Calls `draw` with what has come so far, as often as it can be rendered, and once at the end. Resolves to the turn's
 * outcome; rejects if the stream ends before it.
 */
export const receive = async (
  body: ReadableStream<Uint8Array>,
  draw: (received: Received) => void
): Promise<"done" | "failed"> => {
  const seen = { done: false, failed: false }
  let reply = ""
  let citations: ReadonlyArray<Source> = []
  let due: ReturnType<typeof setTimeout> | undefined
  const drawNow = () => {
    clearTimeout(due)
    due = undefined
    draw({ reply, citations })
  }
  try {
    await read(body, (part) => {
      const source = sourceOf(part)
      if (part.type === "text-delta") reply += part.delta
      if (source !== null) citations = [...citations, source]
      if (source !== null || part.type === "text-delta") due ??= setTimeout(drawNow, drawEvery(reply))
      if (part.type === "error") seen.failed = true
      if (part.type === "data-done") seen.done = true
    })
  } finally {
    drawNow()
  }
  if (!seen.done && !seen.failed) throw new Error("The stream ended before its result.")
  return seen.failed ? "failed" : "done"
}
