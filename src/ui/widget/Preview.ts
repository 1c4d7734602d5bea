/** The widget's preview in the dashboard. It shows the settings and sends nothing. */
import { type Client, clientOf, Refusal } from "./Client.ts"
import type { Settings, WidgetSettings } from "./Settings.ts"

/** A message from the dashboard to the iframe of the preview. */
export interface PreviewMessage {
  readonly look?: WidgetSettings
  /** `light`, `dark` or `system`. */
  readonly scheme: string
}

const refuse = () => Promise.reject(new Refusal(0, "PREVIEW"))

/** A client that sends no requests. */
export const previewClient = (settings: Settings): Client => ({
  ...clientOf(settings),
  init: () =>
    Promise.resolve({
      sessionId: "preview",
      agent: { id: "preview", name: settings.widget?.name ?? "", greeting: null },
      endUserId: "preview",
      conversationId: null,
      realtimeToken: null,
      realtimeUrl: ""
    }),
  conversation: () =>
    Promise.resolve({ conversation: null, turn: null, realtimeToken: null, realtimeUrl: "" }),
  messages: () => Promise.resolve({ messages: [], nextCursor: null, hasMore: false }),
  handoff: refuse,
  send: refuse
})
