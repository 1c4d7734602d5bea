/** POST /chat with { "message": … } answers { "reply", "citations" }. */
import { openGuide } from "../../guide.mjs"

export const runtime = "nodejs"

/**
 * Opened by the first request, so that a build opens nothing. A development server loads this file again with each
 * change.
 */
const opened = () => {
  globalThis.guide ??= openGuide().catch((error) => {
    globalThis.guide = undefined
    throw error
  })
  return globalThis.guide
}

export async function POST(request) {
  const body = await request.json().catch(() => undefined)
  if (typeof body?.message !== "string")
    return Response.json({ error: "a message is missing" }, { status: 400 })
  const { agent } = await opened()
  const { citations, reply } = await agent.chat({ message: body.message })
  return Response.json({ reply, citations })
}
