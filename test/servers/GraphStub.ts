/** A provider on loopback that takes messages as told, and remembers every one that it took. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { answerAccount } from "./Accounts.ts"

/** What becomes of a call; `lost` takes the message and cuts the connection before its answer, `silent` never answers. */
export type Fate = "taken" | "lost" | "silent" | "cut" | "busy" | "limited" | "refused"

/** Whether the caller cannot know what became of the message. */
export const isAnswerLost = (fate: Fate): boolean => fate === "lost" || fate === "silent" || fate === "cut"

export interface Taken {
  readonly path: string
  readonly token: string
  readonly outboxId: string
  readonly to: string
  readonly text: string
}

export interface GraphStub {
  readonly url: string
  readonly taken: ReadonlyArray<Taken>
  /** How many answers of a message's calls were lost here. */
  readonly lostAnswers: (outboxId: string) => number
  /** Calls that were begun, whatever became of them. */
  readonly calls: () => number
  readonly close: () => void
}

const failures = {
  refused: {
    status: 400,
    body: { error: { code: 551, message: "This person is not available right now" } },
    headers: {}
  },
  busy: {
    status: 503,
    body: { error: { code: 2, message: "Service temporarily unavailable" } },
    headers: {}
  },
  limited: {
    status: 429,
    body: { error: { code: 80007, message: "Rate limit hit" } },
    headers: { "retry-after": "1" }
  }
} as const

/** `fateOf` is asked with the place of the message among all, of the call among the message's, both from 1, and its recipient. */
export const startGraph = async (
  fateOf: (message: number, call: number, to: string) => Fate
): Promise<GraphStub> => {
  const taken: Array<Taken> = []
  const begun = new Map<string, { readonly place: number; calls: number; lost: number }>()
  let calls = 0
  const server = Http.createServer((request, response) => {
    if (answerAccount(request, response)) return
    let text = ""
    request.on("data", (chunk: Buffer) => (text += chunk.toString()))
    request.on("end", () => {
      const body = JSON.parse(text)
      const answer = (status: number, json: unknown, headers = {}) => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end(JSON.stringify(json))
      }
      if (body.status === "read" || body.sender_action !== undefined) return answer(200, { success: true })
      calls++
      // Messenger's messages are objects of their own.
      const isMessenger = body.message !== undefined
      const outboxId: string = isMessenger ? body.message.metadata : body.biz_opaque_callback_data
      const message = begun.get(outboxId) ?? { place: begun.size + 1, calls: 0, lost: 0 }
      begun.set(outboxId, message)
      const to: string = isMessenger ? body.recipient.id : body.to
      const fate = fateOf(message.place, ++message.calls, to)
      if (isAnswerLost(fate)) message.lost++
      if (fate === "cut") return request.socket.destroy()
      if (fate === "busy" || fate === "limited" || fate === "refused") {
        const { body: error, headers, status } = failures[fate]
        return answer(status, error, headers)
      }
      taken.push({
        path: request.url ?? "",
        token: request.headers.authorization ?? "",
        outboxId,
        to,
        text: isMessenger ? body.message.text : body.text.body
      })
      if (fate === "lost") return request.socket.destroy()
      if (fate === "silent") return
      return answer(
        200,
        isMessenger
          ? { recipient_id: body.recipient.id, message_id: `m_out.${taken.length}` }
          : { messages: [{ id: `wamid.out.${taken.length}` }] }
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v25.0`,
    taken,
    lostAnswers: (outboxId) => begun.get(outboxId)?.lost ?? 0,
    calls: () => calls,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
