/** The widget's settings as input and as stored. */
import type { PatchWidget } from "../../../../domain/agents/Widget.ts"
import type { Look, Widget } from "../../api/Widgets.ts"
import { noScope, scopeOf, type TypedScope } from "../agents/KeyScope.tsx"
import { meantBy, originsOf } from "../agents/parseOrigins.ts"
import { typedLabels } from "../sources/LabelsField.tsx"
import { linesOf } from "../../forms/lines.ts"

const maxSuggestions = 4

const orNull = (text: string) => (text.trim() === "" ? null : text)

export interface WidgetForm extends TypedScope {
  readonly [field: string]: unknown
  readonly color: string
  readonly avatar: string
  readonly position: Look["position"]
  readonly greeting: string
  /** One a line. */
  readonly suggestions: string
  readonly language: Look["language"]
  readonly consent: string
  readonly linkLabel: string
  readonly linkUrl: string
  readonly origins: string
}

const typedScopeOf = (scope: Widget["sourceScope"]): TypedScope =>
  scope === null
    ? noScope
    : { limited: true, labels: typedLabels(scope.labels ?? []), sourceIds: scope.sourceIds ?? [] }

export const formOf = ({ allowedOrigins, look, sourceScope }: Widget): WidgetForm => ({
  ...typedScopeOf(sourceScope),
  color: look.color ?? "",
  avatar: look.avatar ?? "",
  position: look.position,
  greeting: look.greeting ?? "",
  suggestions: look.suggestions.join("\n"),
  language: look.language,
  consent: look.consent?.text ?? "",
  linkLabel: look.consent?.link?.label ?? "",
  linkUrl: look.consent?.link?.url ?? "",
  origins: allowedOrigins.join("\n")
})

const linkOf = ({ linkLabel, linkUrl }: WidgetForm) =>
  linkUrl.trim() === "" ? null : { label: orNull(linkLabel) ?? linkUrl.trim(), url: linkUrl.trim() }

/** Everything except the websites. */
const lookOf = (form: WidgetForm): Look => ({
  color: orNull(form.color),
  avatar: orNull(form.avatar),
  position: form.position,
  greeting: orNull(form.greeting),
  suggestions: linesOf(form.suggestions),
  language: form.language,
  consent: orNull(form.consent) === null ? null : { text: form.consent, link: linkOf(form) }
})

/** The settings for the preview: only values that can be stored. */
export const shownOf = (
  form: WidgetForm,
  agent: { readonly name: string; readonly greeting?: string | null }
) => {
  const look = lookOf(form)
  return {
    ...look,
    name: agent.name,
    greeting: look.greeting ?? agent.greeting ?? null,
    suggestions: look.suggestions.slice(0, maxSuggestions)
  }
}

export const patchOf = (form: WidgetForm): typeof PatchWidget.Encoded => ({
  ...lookOf(form),
  sourceScope: null,
  ...scopeOf(form),
  allowedOrigins: originsOf(meantBy(form.origins))
})

/** True if all entered websites are valid. */
export const areOrigins = ({ origins }: WidgetForm): boolean =>
  meantBy(origins).every(({ origin }) => origin !== null)
