/** Client of the routes that a page may call with its key. Results are without the envelope. */
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

/** The service refused the request and did nothing. After any other error the outcome is unknown. */
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

/** Timeout of all requests except turns and files. */
const requestTimeoutMs = 20_000
/**
 * Timeout for the headers of a turn's response. The server sends them once the conversation's earlier turns have ended,
 * and a turn takes at most a minute by default. With files, the upload gets five more minutes: the server's limit of a
 * request.
 */
const headersTimeoutMs = 90_000
const uploadTimeoutMs = 300_000

export const clientOf = ({ base, key, language, visitorToken }: Settings) => {
  const headers = {
    "x-api-key": key,
    ...(visitorToken === null ? {} : { "x-visitor-token": visitorToken })
  }

  const call = async <A, B = never>(path: string, body?: B): Promise<A> => {
    const response = await fetch(`${base}${path}`, {
      headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
      credentials: "omit",
      signal: AbortSignal.timeout(requestTimeoutMs),
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
    })
    if (!response.ok) throw await refusalOf(response)
    const { data }: { readonly data?: A } = await response.json()
    if (data === undefined) throw new Error("The response has no data.")
    return data
  }

  const sessionQuery = (sessionId: string) => `sessionId=${encodeURIComponent(sessionId)}`

  return {
    base,
    widget: () => call<typeof ShownWidget.Encoded>("/api/sdk/widget"),
    init: (body: typeof InitRequest.Encoded) =>
      call<Session, typeof InitRequest.Encoded>("/api/sdk/init", body),
    conversation: (sessionId: string) =>
      call<typeof ConversationView.Encoded>(`/api/sdk/conversation?${sessionQuery(sessionId)}`),
    messages: (sessionId: string, cursor: string | null) =>
      call<typeof WidgetMessagePage.Encoded>(
        `/api/sdk/messages?limit=100&${sessionQuery(sessionId)}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
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
      const response = await fetch(`${base}${path}?${sessionQuery(sessionId)}`, {
        headers,
        credentials: "omit",
        signal: AbortSignal.timeout(60_000)
      })
      if (!response.ok) throw await refusalOf(response)
      return response.blob()
    },
    /**
     * Starts a turn and returns its stream. Rejects with a `Refusal` if the message was not accepted. `retryOf` is the
     * id of the stored message that is answered again.
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
      const sendsJson = files.length === 0
      const turn: typeof HostedTurnRequest.Encoded = {
        sessionId,
        message,
        ...(retryOf === null ? {} : { retryOf })
      }
      const timeoutOrAbort = new AbortController()
      const abort = () => timeoutOrAbort.abort()
      if (signal.aborted) abort()
      signal.addEventListener("abort", abort, { once: true })
      const timer = setTimeout(abort, sendsJson ? headersTimeoutMs : headersTimeoutMs + uploadTimeoutMs)
      try {
        const response = await fetch(`${base}/api/v1/chat/stream`, {
          method: "POST",
          headers: sendsJson ? { ...headers, "content-type": "application/json" } : headers,
          body: sendsJson ? JSON.stringify(turn) : form,
          credentials: "omit",
          signal: timeoutOrAbort.signal
        })
        if (!response.ok) {
          const refusal = await refusalOf(response)
          // An error of a gateway, not of the service. The message may have reached the service.
          throw refusal.status >= 500 && refusal.code === "" ? new Error("A gateway failed.") : refusal
        }
        if (response.body === null) throw new Error("The response has no body.")
        return response.body
      } finally {
        clearTimeout(timer)
      }
    }
  } as const
}

export type Client = ReturnType<typeof clientOf>
