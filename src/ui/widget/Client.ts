/** The routes that a page may call with its key, without the envelope. */
import type { Media as DeclaredMedia } from "../../domain/chat/ChatTurn.ts"
import type {
  ConversationView,
  FeedbackRequest,
  HandoffRequest,
  TypingRequest,
  HostedTurnRequest,
  IdentifyRequest,
  InitRequest,
  LastTurn,
  SessionView,
  WidgetMessage
} from "../../domain/chat/Widget.ts"
import type { FailureBody } from "../../http/Envelope.ts"
import type { ShownWidget } from "../../domain/agents/Widget.ts"
import type { WidgetMessagePage } from "../../http/hosted/chat/SdkApi.ts"
import type { Settings } from "./Settings.ts"
import { languageOf } from "./Texts.ts"

export type Media = typeof DeclaredMedia.Encoded
export type Message = typeof WidgetMessage.Encoded
export type Session = typeof SessionView.Encoded
/** State of the conversation's last turn. `lost`: the server stopped during the turn, and it may be retried. */
export type Turn = typeof LastTurn.Encoded

export interface Outgoing {
  readonly message: string
  readonly files: ReadonlyArray<File>
  readonly retryOf: string | null
}

/** The service refused the request, so nothing was accepted. After any other error the outcome is unknown. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

const refusalOf = async (response: Response) => {
  const body: Partial<FailureBody> = await response.json().catch(() => ({}))
  return new Refusal(response.status, body.error?.code ?? "")
}

/** Time-out of short requests in milliseconds. */
const requestTimeout = 20_000
/**
 * Time in milliseconds for the headers of a turn's answer. The server sends them once the conversation's earlier turns
 * have ended, and a turn takes at most a minute by default. Files may take five minutes more to arrive: the server's
 * limit of a request.
 */
const headersTimeout = 90_000
const uploadTimeout = 300_000

export const clientOf = ({ base, key, language, visitorToken }: Settings) => {
  const headers = {
    "x-api-key": key,
    ...(visitorToken === null ? {} : { "x-visitor-token": visitorToken })
  }

  const call = async <A, B = never>(path: string, body?: B): Promise<A> => {
    const response = await fetch(`${base}${path}`, {
      headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
      credentials: "omit",
      signal: AbortSignal.timeout(requestTimeout),
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
    })
    if (!response.ok) throw await refusalOf(response)
    const { data }: { readonly data?: A } = await response.json()
    if (data === undefined) throw new Error("An answer without data.")
    return data
  }

  const of = (sessionId: string) => `sessionId=${encodeURIComponent(sessionId)}`

  return {
    base,
    look: () => call<typeof ShownWidget.Encoded>("/api/sdk/widget"),
    init: (body: typeof InitRequest.Encoded) =>
      call<Session, typeof InitRequest.Encoded>("/api/sdk/init", body),
    place: (sessionId: string) =>
      call<typeof ConversationView.Encoded>(`/api/sdk/conversation?${of(sessionId)}`),
    messages: (sessionId: string, cursor: string | null) =>
      call<typeof WidgetMessagePage.Encoded>(
        `/api/sdk/messages?limit=100&${of(sessionId)}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
      ),
    identify: (sessionId: string, externalEndUserId: string) =>
      call<unknown, typeof IdentifyRequest.Encoded>("/api/sdk/identify", { sessionId, externalEndUserId }),
    rate: (sessionId: string, messageId: string, rating: NonNullable<Message["rating"]>, comment: string) =>
      call<unknown, typeof FeedbackRequest.Encoded>("/api/sdk/feedback", {
        sessionId,
        messageId,
        rating,
        ...(comment.trim() === "" ? {} : { comment: comment.trim() })
      }),
    handoff: (sessionId: string) =>
      call<unknown, typeof HandoffRequest.Encoded>("/api/sdk/handoff", {
        sessionId,
        language: languageOf(language)
      }),
    typing: (sessionId: string) =>
      call<unknown, typeof TypingRequest.Encoded>("/api/sdk/typing", { sessionId }),
    /** A file of the conversation, loaded only from the service itself. */
    file: async (sessionId: string, path: string): Promise<Blob> => {
      const response = await fetch(`${base}${path}?${of(sessionId)}`, {
        headers,
        credentials: "omit",
        signal: AbortSignal.timeout(60_000)
      })
      if (!response.ok) throw await refusalOf(response)
      return response.blob()
    },
    /**
     * The stream of a turn; rejects with a `Refusal` where the message was not accepted. `retryOf` is the stored message that
     * is answered again.
     */
    send: async (
      sessionId: string,
      { files, message, retryOf }: Outgoing,
      signal: AbortSignal
    ): Promise<ReadableStream<Uint8Array>> => {
      const form = new FormData()
      form.set("message", message)
      form.set("sessionId", sessionId)
      for (const file of files) form.append("files", file)
      const plain = files.length === 0
      const turn: typeof HostedTurnRequest.Encoded = {
        sessionId,
        message,
        ...(retryOf === null ? {} : { retryOf })
      }
      const sending = new AbortController()
      const abort = () => sending.abort()
      if (signal.aborted) abort()
      signal.addEventListener("abort", abort, { once: true })
      const timer = setTimeout(abort, plain ? headersTimeout : headersTimeout + uploadTimeout)
      try {
        const response = await fetch(`${base}/api/v1/chat/stream`, {
          method: "POST",
          headers: plain ? { ...headers, "content-type": "application/json" } : headers,
          body: plain ? JSON.stringify(turn) : form,
          credentials: "omit",
          signal: sending.signal
        })
        if (!response.ok) {
          const refusal = await refusalOf(response)
          // A gateway's own error: the message may have reached the service.
          throw refusal.status >= 500 && refusal.code === "" ? new Error("A gateway has failed.") : refusal
        }
        if (response.body === null) throw new Error("An answer without a body.")
        return response.body
      } finally {
        clearTimeout(timer)
      }
    }
  } as const
}

export type Client = ReturnType<typeof clientOf>
