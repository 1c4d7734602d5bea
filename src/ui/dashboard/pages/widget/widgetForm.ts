/** Converts the widget's settings between the form and what is stored. */
import type { PatchWidget } from "../../../../domain/agents/Widget.ts"
import type { Look, Widget } from "../../api/Widgets.ts"
import { scopeFieldsOf, scopeOrNull, type ScopeFieldValues } from "../agents/ScopeFields.tsx"
import { parseOrigins, validOrigins } from "../agents/parseOrigins.ts"
import { linesOf } from "../../forms/lines.ts"

const maxSuggestions = 4

const textOrNull = (text: string) => (text.trim() === "" ? null : text)

export interface WidgetForm extends ScopeFieldValues {
  readonly [field: string]: unknown
  readonly color: string
  readonly avatar: string
  readonly position: Look["position"]
  readonly greeting: string
  /** One per line. */
  readonly suggestions: string
  readonly language: Look["language"]
  readonly consent: string
  readonly linkLabel: string
  readonly linkUrl: string
  readonly origins: string
}

export const formOf = ({ allowedOrigins, look, sourceScope }: Widget): WidgetForm => ({
  ...scopeFieldsOf(sourceScope),
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
  linkUrl.trim() === "" ? null : { label: textOrNull(linkLabel) ?? linkUrl.trim(), url: linkUrl.trim() }

/** The look: everything except the websites and the sources. */
const lookOf = (form: WidgetForm): Look => ({
  color: textOrNull(form.color),
  avatar: textOrNull(form.avatar),
  position: form.position,
  greeting: textOrNull(form.greeting),
  suggestions: linesOf(form.suggestions),
  language: form.language,
  consent: textOrNull(form.consent) === null ? null : { text: form.consent, link: linkOf(form) }
})

/** The settings for the preview, limited to values that can be stored. */
export const previewOf = (
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
  ...scopeOrNull(form),
  allowedOrigins: validOrigins(parseOrigins(form.origins))
})

/** True if all entered websites are valid. */
export const hasValidOrigins = ({ origins }: WidgetForm): boolean =>
  parseOrigins(origins).every(({ origin }) => origin !== null)
