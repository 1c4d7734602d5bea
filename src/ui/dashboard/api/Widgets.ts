/** The widget of an agent, and the progress of the guided start. */
import { queryOptions } from "@tanstack/react-query"
import type { PutStart, Questions, Start as DeclaredStart } from "../../../domain/agents/Start.ts"
import type { AgentWidget, PatchWidget, WidgetLook } from "../../../domain/agents/Widget.ts"
import type { OneWidget } from "../../../http/hosted/agents/WidgetsApi.ts"
import { call } from "./Client.ts"

export type Widget = typeof AgentWidget.Encoded
export type Look = typeof WidgetLook.Encoded
export type Start = typeof DeclaredStart.Encoded

export const widget = (agentId: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "widget"],
    queryFn: ({ signal }) =>
      call<typeof OneWidget.Encoded>("GET", `/api/agents/${agentId}/widget`, { signal }).then(
        (data) => data.widget
      )
  })

/** Version 0 stands for the defaults, before anything was stored. */
export const patchWidget = (agentId: string, version: number, body: typeof PatchWidget.Encoded) =>
  call<typeof OneWidget.Encoded, typeof PatchWidget.Encoded>("PATCH", `/api/agents/${agentId}/widget`, {
    body,
    version
  }).then((data) => data.widget)

export const questions = (agentId: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "questions"],
    queryFn: ({ signal }) =>
      call<typeof Questions.Encoded>("GET", `/api/agents/${agentId}/questions`, { signal }).then(
        (data) => data.questions
      )
  })

/** The progress for the given agent, or for one that the service chooses. */
export const start = (agentId: string | null) =>
  queryOptions({
    queryKey: ["start", agentId],
    queryFn: ({ signal }) => call<Start>("GET", "/api/start", { query: { agentId }, signal })
  })

export const dismissStart = (dismissed: boolean) =>
  call<unknown, typeof PutStart.Encoded>("PUT", "/api/start", { body: { dismissed } })

/** The script tag to paste into a page. It never changes. */
export const scriptOf = (publicId: string): string =>
  `<script src="${location.origin}/widget.js" data-agent="${publicId}" async></script>`
