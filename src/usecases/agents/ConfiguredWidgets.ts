/** The widget in an agent's configuration file. */
import * as Effect from "effect/Effect"
import { type AgentWidget, defaultLook, type PatchWidget } from "../../domain/agents/Widget.ts"
import { canonical, changedMembers } from "../../domain/Json.ts"
import { openScope } from "../../domain/knowledge/SourceScope.ts"
import { type PartStep, partStep } from "./ConfigurationSteps.ts"
import type { Widgets } from "./Widgets.ts"

/** Settings of a new widget. */
const defaultWidget = { ...defaultLook, allowedOrigins: [], sourceScope: openScope } satisfies PatchWidget

/** The widget in file form, without defaults; undefined when there is no active widget. */
export const widgetToFileForm = (widget: AgentWidget | undefined): PatchWidget | undefined => {
  if (widget === undefined || widget.publicId === null) return undefined
  const { allowedOrigins, look, sourceScope } = widget
  return changedMembers<PatchWidget>({ ...look, allowedOrigins, sourceScope }, defaultWidget)
}

/** The planned changes; none when the file has no widget or the same one. */
export const widgetSteps = (
  widgets: Pick<Widgets, "patch">,
  widget: AgentWidget | undefined,
  configured: PatchWidget | undefined
): ReadonlyArray<PartStep> => {
  if (configured === undefined) return []
  const before = widgetToFileForm(widget)
  const after = changedMembers<PatchWidget>({ ...defaultWidget, ...configured }, defaultWidget)
  if (before !== undefined && canonical(before) === canonical(after)) return []
  return [
    partStep(["widget"], { before: before ?? null, after }, ({ agentId, tenantId }) =>
      Effect.asVoid(widgets.patch({ tenantId }, agentId, { ...defaultWidget, ...configured }))
    )
  ]
}
