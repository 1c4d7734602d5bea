/** The widget's preview in the dashboard: it shows the settings, and sends nothing. */
import { type Client, clientOf, Refusal } from "./Client.ts"
import type { Look, Settings } from "./Settings.ts"

/** Messages from the dashboard to its iframe. */
export interface Previewed {
  readonly look?: Look
  /** `light`, `dark` or `system`. */
  readonly scheme: string
}

const unsent = () => Promise.reject(new Refusal(0, "PREVIEW"))

/** Sends no request. */
export const previewClient = (settings: Settings): Client => ({
  ...clientOf(settings),
  init: () =>
    Promise.resolve({
      sessionId: "preview",
      agent: { id: "preview", name: settings.look?.name ?? "", greeting: null },
      endUserId: "preview",
      conversationId: null,
      realtimeToken: null,
      realtimeUrl: ""
    }),
  place: () => Promise.resolve({ conversation: null, turn: null, realtimeToken: null, realtimeUrl: "" }),
  messages: () => Promise.resolve({ messages: [], nextCursor: null, hasMore: false }),
  handoff: unsent,
  send: unsent
})
