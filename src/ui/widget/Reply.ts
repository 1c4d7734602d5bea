/** Receives the stream of a turn. */
import { readParts, type Source, sourceOf } from "../EventStream.ts"

export interface Received {
  readonly reply: string
  readonly citations: ReadonlyArray<Source>
}

/** Interval between two renderings of a streaming reply. Longer replies take longer to render. */
const renderIntervalMs = (reply: string) => Math.max(40, reply.length / 100)

/**
 * Calls `render` with the reply so far, at limited intervals and once at the end. Resolves to the turn's outcome.
 * Rejects if the stream ends before it.
 */
export const receiveReply = async (
  body: ReadableStream<Uint8Array>,
  render: (received: Received) => void
): Promise<"done" | "failed"> => {
  const outcome = { done: false, failed: false }
  let reply = ""
  let citations: ReadonlyArray<Source> = []
  let timer: ReturnType<typeof setTimeout> | undefined
  const renderNow = () => {
    clearTimeout(timer)
    timer = undefined
    render({ reply, citations })
  }
  try {
    await readParts(body, (part) => {
      const source = sourceOf(part)
      if (part.type === "text-delta") reply += part.delta
      if (source !== null) citations = [...citations, source]
      if (source !== null || part.type === "text-delta")
        timer ??= setTimeout(renderNow, renderIntervalMs(reply))
      if (part.type === "error") outcome.failed = true
      if (part.type === "data-done") outcome.done = true
    })
  } finally {
    renderNow()
  }
  if (!outcome.done && !outcome.failed) throw new Error("The stream ended before its result.")
  return outcome.failed ? "failed" : "done"
}
