/** The widget that a file configures for an agent. */
import * as Effect from "effect/Effect"
import { type AgentWidget, defaultLook, type PatchWidget } from "../../domain/agents/Widget.ts"
import { canonical, differing } from "../../domain/Json.ts"
import { openScope } from "../../domain/knowledge/SourceScope.ts"
import { type PartStep, partStep } from "./PartStep.ts"
import type { Widgets } from "./Widgets.ts"

/** As a widget that was just made. */
const usual = { ...defaultLook, allowedOrigins: [], sourceScope: openScope } satisfies PatchWidget

/** As a file says it, without what is as usual; undefined without a widget that answers. */
export const writtenWidget = (widget: AgentWidget | undefined): PatchWidget | undefined => {
  if (widget === undefined || widget.publicId === null) return undefined
  const { allowedOrigins, look, sourceScope } = widget
  return differing<PatchWidget>({ ...look, allowedOrigins, sourceScope }, usual)
}

/** None when the file says nothing of a widget, or what it is already. */
export const widgetSteps = (
  widgets: Pick<Widgets, "patch">,
  widget: AgentWidget | undefined,
  said: PatchWidget | undefined
): ReadonlyArray<PartStep> => {
  if (said === undefined) return []
  const before = writtenWidget(widget)
  const after = differing<PatchWidget>({ ...usual, ...said }, usual)
  if (before !== undefined && canonical(before) === canonical(after)) return []
  return [
    partStep(["widget"], { before: before ?? null, after }, ({ agentId, tenantId }) =>
      Effect.asVoid(widgets.patch({ tenantId }, agentId, { ...usual, ...said }))
    )
  ]
}
