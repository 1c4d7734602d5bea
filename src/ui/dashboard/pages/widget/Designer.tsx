/** The designer of an agent's widget: its look and texts with a live preview, and the script that embeds it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import type { Agent } from "../../api/Agents.ts"
import { isOutdated } from "../../api/Client.ts"
import { patchWidget, questions, scriptOf, type Widget, widget as widgetQuery } from "../../api/Widgets.ts"
import { Button } from "../../components/Button.tsx"
import { ColorField } from "../../components/ColorField.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { Select, TextArea, TextField } from "../../components/Field.tsx"
import { Loaded, Section } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { ConflictingValue, ConflictNotice, DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "../agents/AgentPart.tsx"
import { ScopeFields, scopePaths } from "../agents/ScopeFields.tsx"
import { OriginsField } from "../agents/OriginsField.tsx"
import css from "./Designer.module.css"
import { hasValidOrigins, formOf, patchOf, previewOf } from "./widgetForm.ts"
import { WidgetPreview } from "./WidgetPreview.tsx"

const words = texts(
  {
    title: (name: string) => `Widget of ${name}`,
    lead: "A chat for your website, as your visitors see it.",
    lookLead: "It appears in the preview at once, and on your website when you save.",
    saysLead: "What a visitor reads before the first message.",
    line: "The line for your pages",
    script: "Script",
    scriptHelp:
      "Paste this line before </body>. It stays the same: what you change here shows on your pages within minutes.",
    pages: "Where it is shown",
    origins: "Websites that may show it",
    originsHelp: "One a line, such as https://www.example.com. With and without www are two.",
    readable: "What visitors read",
    readableHelp:
      "Separated by commas. Visitors read sources with at least one of them, and those without labels. A visitor with a token of your server reads what the token says.",
    look: "Look",
    color: "Colour",
    avatar: "Avatar",
    avatarHelp: "A letter or an emoji.",
    position: "Position",
    right: "Right",
    left: "Left",
    says: "Words",
    greeting: "Greeting",
    greetingHelp: "Empty: the greeting in the agent’s settings.",
    suggestions: "Suggested questions",
    suggestionsHelp: "One a line, at most four.",
    suggest: "Suggest from the content",
    noSuggestions: "The content has nothing to suggest yet.",
    language: "Language",
    auto: "The page’s",
    privacy: "Privacy",
    consent: "Consent line",
    consentHelp: "Plain text below the message field.",
    linkLabel: "Link text",
    linkUrl: "Link address",
    linkHelp: "Begins with https://.",
    save: "Save widget"
  },
  {
    title: (name: string) => `Widget von ${name}`,
    lead: "Ein Chat für Ihre Website, so wie Ihre Besucher ihn sehen.",
    lookLead: "Zeigt sich sofort in der Vorschau, und auf Ihrer Website, wenn Sie speichern.",
    saysLead: "Was ein Besucher vor der ersten Nachricht liest.",
    line: "Die Zeile für Ihre Seiten",
    script: "Skript",
    scriptHelp:
      "Diese Zeile vor </body> einfügen. Sie bleibt gleich: Was hier geändert wird, zeigt sich in wenigen Minuten auf Ihren Seiten.",
    pages: "Wo es gezeigt wird",
    origins: "Websites, die es zeigen dürfen",
    originsHelp: "Je Zeile eine, etwa https://www.example.com. Mit und ohne www sind zweierlei.",
    readable: "Was Besucher lesen",
    readableHelp:
      "Durch Kommas getrennt. Besucher lesen Quellen mit mindestens einem davon und solche ohne Etikett. Wer ein Token Ihres Servers hat, liest, was es sagt.",
    look: "Aussehen",
    color: "Farbe",
    avatar: "Avatar",
    avatarHelp: "Ein Buchstabe oder ein Emoji.",
    position: "Position",
    right: "Rechts",
    left: "Links",
    says: "Worte",
    greeting: "Begrüßung",
    greetingHelp: "Leer: die Begrüßung aus den Einstellungen des Agenten.",
    suggestions: "Vorgeschlagene Fragen",
    suggestionsHelp: "Je Zeile eine, höchstens vier.",
    suggest: "Aus dem Inhalt vorschlagen",
    noSuggestions: "Der Inhalt gibt noch nichts zum Vorschlagen her.",
    language: "Sprache",
    auto: "Die der Seite",
    privacy: "Datenschutz",
    consent: "Einwilligung",
    consentHelp: "Reiner Text unter dem Eingabefeld.",
    linkLabel: "Text des Links",
    linkUrl: "Adresse des Links",
    linkHelp: "Beginnt mit https://.",
    save: "Widget speichern"
  }
)

const fieldPaths = [
  "color",
  "avatar",
  "greeting",
  "suggestions",
  "consent.link.label",
  "consent.link.url",
  "consent",
  "allowedOrigins",
  ...scopePaths
] as const

const DesignerForm = ({ agent, stored }: { readonly agent: Agent; readonly stored: Widget }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft({ name: `widget.${agent.id}`, title: t.title(agent.name), stored: formOf(stored) })
  const { change, value } = draft
  const suggest = useMutation({
    mutationFn: () => queries.fetchQuery(questions(agent.id)),
    // Without suggestions, the input is kept.
    onSuccess: (suggested) =>
      suggested.length === 0 ? undefined : change({ suggestions: suggested.join("\n") })
  })
  const { queryKey } = widgetQuery(agent.id)
  const save = useMutation({
    mutationFn: () => patchWidget(agent.id, stored.version, patchOf(value)),
    onMutate: () => value,
    onSuccess: (saved, _, sent) => {
      draft.saved(sent)
      queries.setQueryData(queryKey, saved)
      return queries.invalidateQueries({ queryKey: ["start"] })
    },
    onError: (problem) => (isOutdated(problem) ? queries.invalidateQueries({ queryKey }) : undefined)
  })
  const { errorOf, general } = useIssues(save.error, fieldPaths)
  return (
    <div className={css["designer"]}>
      <div className={css["fields"]}>
        <Form
          onSubmit={() => {
            // Invalid origins are reported at the field.
            if (hasValidOrigins(value)) save.mutate()
          }}
        >
          <ConflictNotice draft={draft} problem={save.error} />
          {stored.publicId === null ? null : (
            <Section title={t.line} lead={t.scriptHelp} guide="widget#embedding">
              <Copyable label={t.script} value={scriptOf(stored.publicId)} />
            </Section>
          )}
          <Section title={t.look} lead={t.lookLead}>
            <ColorField label={t.color} value={value.color} onChange={(color) => change({ color })} />
            <TextField
              label={t.avatar}
              help={t.avatarHelp}
              value={value.avatar}
              onChange={(avatar) => change({ avatar })}
              error={errorOf("avatar")}
            />
            <Select
              label={t.position}
              options={[
                ["right", t.right],
                ["left", t.left]
              ]}
              value={value.position}
              onChange={(position) => change({ position })}
            />
            <ConflictingValue draft={draft} name="color" />
          </Section>
          <Section title={t.says} lead={t.saysLead}>
            <TextArea
              label={t.greeting}
              help={t.greetingHelp}
              rows={2}
              value={value.greeting}
              onChange={(greeting) => change({ greeting })}
              error={errorOf("greeting")}
            />
            <ConflictingValue draft={draft} name="greeting" />
            <TextArea
              label={t.suggestions}
              help={t.suggestionsHelp}
              rows={4}
              value={value.suggestions}
              onChange={(suggestions) => change({ suggestions })}
              error={errorOf("suggestions")}
            />
            <ConflictingValue draft={draft} name="suggestions" />
            <div>
              <Button busy={suggest.isPending} onClick={() => suggest.mutate()}>
                {t.suggest}
              </Button>
            </div>
            {suggest.data?.length === 0 ? <p role="status">{t.noSuggestions}</p> : null}
            {suggest.error === null ? null : <Problem problem={suggest.error} />}
            <Select
              label={t.language}
              options={[
                ["auto", t.auto],
                ["en", "English"],
                ["de", "Deutsch"]
              ]}
              value={value.language}
              onChange={(language) => change({ language })}
            />
          </Section>
          <Section title={t.pages} guide="widget#who-may-call">
            <OriginsField
              label={t.origins}
              help={t.originsHelp}
              required
              value={value.origins}
              onChange={(origins) => change({ origins })}
              error={errorOf("allowedOrigins")}
            />
            <ConflictingValue draft={draft} name="origins" />
          </Section>
          <Section title={t.readable} guide="widget#who-the-visitor-is">
            <ScopeFields
              agentId={agent.id}
              help={t.readableHelp}
              value={value}
              onChange={change}
              errorOf={errorOf}
            />
            <ConflictingValue draft={draft} name="labels" />
          </Section>
          <Section title={t.privacy}>
            <TextField
              label={t.consent}
              help={t.consentHelp}
              value={value.consent}
              onChange={(consent) => change({ consent })}
              error={errorOf("consent")}
            />
            <ConflictingValue draft={draft} name="consent" />
            {value.consent.trim() === "" ? null : (
              <>
                <TextField
                  label={t.linkLabel}
                  value={value.linkLabel}
                  onChange={(linkLabel) => change({ linkLabel })}
                  error={errorOf("consent.link.label")}
                />
                <TextField
                  label={t.linkUrl}
                  help={t.linkHelp}
                  inputMode="url"
                  spellCheck="false"
                  value={value.linkUrl}
                  onChange={(linkUrl) => change({ linkUrl })}
                  error={errorOf("consent.link.url")}
                />
              </>
            )}
          </Section>
          {general === null || isOutdated(general) ? null : <Problem problem={general} />}
          <Actions sticky>
            <DraftState draft={draft}>{save.isSuccess ? common.saved : ""}</DraftState>
            <Button kind="primary" type="submit" busy={save.isPending}>
              {t.save}
            </Button>
          </Actions>
        </Form>
      </div>
      <div className={css["preview"]}>
        <WidgetPreview look={previewOf(value, agent)} />
      </div>
    </div>
  )
}

const Designer = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const query = useQuery(widgetQuery(agent.id))
  return (
    <AgentPart part="widget" agent={agent} user={user} lead={t.lead} guide="widget">
      <Loaded query={query}>{(stored) => <DesignerForm agent={agent} stored={stored} />}</Loaded>
    </AgentPart>
  )
}

export default Designer
