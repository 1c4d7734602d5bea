/** Instructions and search settings of an agent. */
import { useQueryClient } from "@tanstack/react-query"
import { useLocation } from "wouter"
import { type Agent, agents, deleteAgent } from "../../api/Agents.ts"
import { isOutdated } from "../../api/Client.ts"
import { atLeast } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { Switch } from "../../components/Checkboxes.tsx"
import { Select, TextArea, TextField } from "../../components/Field.tsx"
import { Menu } from "../../components/Menu.tsx"
import { Section } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { ConflictingValue, ConflictNotice, DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "./AgentPart.tsx"
import css from "./Settings.module.css"
import { ModelField, StyleFields } from "./StyleFields.tsx"
import { MaskingFields } from "./MaskingFields.tsx"
import { useSettingsWords } from "./settingsWords.ts"
import { useAgentForm } from "./useAgentForm.ts"

const words = texts(
  {
    lead: "How the agent speaks, what it searches, and when it would rather say nothing. Each saved change is a version.",
    voice: "Voice",
    voiceLead: "Who it is to your customers.",
    instructionsHelp: "How it should speak, what it should do, and what it should leave to people.",
    greeting: "Greeting",
    greetingHelp: "What the widget says first.",
    modelHelp: "The default is the model that the service was configured with.",
    streamReasoning: "Send what the model thinks in streams of the API",
    on: "yes",
    off: "no",
    search: "Search",
    searchLead: "How much of the sources it reads for a question.",
    topKHelp: "1 to 20. More gives the model more to go by, and costs more.",
    minScoreHelp: "0 to 1. Empty: what suits the embedding model.",
    contextTokensHelp: "500 to 32,000. How much of the sources the model reads with a question.",
    maxSearchesHelp: "0 to 8. How often the model may search again before it answers.",
    sources: "Faithfulness to the sources",
    sourcesLead: "What it does when the sources have no answer.",
    note: "Note",
    notePlaceholder: "Why, for the version (optional)",
    removal: "Delete agent",
    question: (name: string) =>
      `“${name}” is gone with its sources, conversations, tools and keys. It cannot be undone.`,
    draft: "Keep as a draft",
    drafted: (version: number) => `Kept as version ${version}, which no turn uses. It is under Versions.`
  },
  {
    lead: "Wie der Agent spricht, was er durchsucht und wann er lieber nichts sagt. Jede gespeicherte Änderung ist eine Version.",
    voice: "Stimme",
    voiceLead: "Wer er für Ihre Kunden ist.",
    instructionsHelp: "Wie er sprechen, was er tun und was er Menschen überlassen soll.",
    greeting: "Begrüßung",
    greetingHelp: "Was das Widget zuerst sagt.",
    modelHelp: "Standard ist das Modell, mit dem der Dienst eingerichtet ist.",
    streamReasoning: "In Streams der API senden, was das Modell überlegt",
    on: "ja",
    off: "nein",
    search: "Suche",
    searchLead: "Wie viel er zu einer Frage aus den Quellen liest.",
    topKHelp: "1 bis 20. Mehr gibt dem Modell mehr Anhalt und kostet mehr.",
    minScoreHelp: "0 bis 1. Leer: was zum Einbettungsmodell passt.",
    contextTokensHelp: "500 bis 32.000. Wie viel das Modell zu einer Frage aus den Quellen liest.",
    maxSearchesHelp: "0 bis 8. Wie oft das Modell noch einmal suchen darf, bevor es antwortet.",
    sources: "Treue zu den Quellen",
    sourcesLead: "Was er tut, wenn die Quellen keine Antwort haben.",
    note: "Notiz",
    notePlaceholder: "Warum, für die Version (freiwillig)",
    removal: "Agent löschen",
    question: (name: string) =>
      `„${name}“ ist dann fort, samt Quellen, Gesprächen, Werkzeugen und Schlüsseln. Das lässt sich nicht rückgängig machen.`,
    draft: "Als Entwurf ablegen",
    drafted: (version: number) =>
      `Abgelegt als Version ${version}, die noch niemandem antwortet. Sie steht unter Versionen.`
  }
)

const SettingsForm = ({ agent, mayChange }: { readonly agent: Agent; readonly mayChange: boolean }) => {
  const t = useText(words)
  const s = useSettingsWords()
  const common = useText(commonTexts)
  const form = useAgentForm(agent)
  const { draft, errorOf, general, note, save, setNote } = form
  const { change, value } = draft
  const done = save.variables === false ? t.drafted(save.data?.agent.version ?? agent.version) : common.saved
  return (
    <Form onSubmit={() => save.mutate(true)}>
      <ConflictNotice draft={draft} problem={save.error} />
      <Section title={t.voice} lead={t.voiceLead} guide="chat" beside>
        <TextField
          label={common.name}
          required
          readOnly={!mayChange}
          value={value.name}
          onChange={(name) => change({ name })}
          error={errorOf("name")}
        />
        <ConflictingValue draft={draft} name="name" />
        <TextArea
          label={s.instructions}
          help={t.instructionsHelp}
          guide="chat"
          rows={8}
          readOnly={!mayChange}
          value={value.instructions}
          onChange={(instructions) => change({ instructions })}
          error={errorOf("instructions")}
        />
        <ConflictingValue draft={draft} name="instructions" />
        <TextArea
          label={t.greeting}
          help={t.greetingHelp}
          rows={2}
          readOnly={!mayChange}
          value={value.greeting}
          onChange={(greeting) => change({ greeting })}
          error={errorOf("greeting")}
        />
        <ConflictingValue draft={draft} name="greeting" />
        <ModelField form={form} help={t.modelHelp} readOnly={!mayChange} />
        <StyleFields form={form} readOnly={!mayChange} />
        <Switch
          label={t.streamReasoning}
          disabled={!mayChange}
          isSelected={value.streamReasoning}
          onChange={(streamReasoning) => change({ streamReasoning })}
        />
        <ConflictingValue
          draft={draft}
          name="streamReasoning"
          format={(on) => (on === true ? t.on : t.off)}
        />
      </Section>
      <Section title={t.search} lead={t.searchLead} guide="retrieval" beside>
        <TextField
          label={s.topK}
          help={t.topKHelp}
          guide="retrieval"
          inputMode="numeric"
          readOnly={!mayChange}
          value={value.topK}
          onChange={(topK) => change({ topK })}
          error={errorOf("retrieval.topK")}
        />
        <ConflictingValue draft={draft} name="topK" />
        <TextField
          label={s.minScore}
          help={t.minScoreHelp}
          guide="retrieval#how-chunks-are-scored"
          inputMode="decimal"
          readOnly={!mayChange}
          value={value.minScore}
          onChange={(minScore) => change({ minScore })}
          error={errorOf("retrieval.minScore")}
        />
        <ConflictingValue draft={draft} name="minScore" />
        <TextField
          label={s.contextTokens}
          help={t.contextTokensHelp}
          guide="chat#how-the-agent-keeps-to-its-sources"
          inputMode="numeric"
          readOnly={!mayChange}
          value={value.contextTokens}
          onChange={(contextTokens) => change({ contextTokens })}
          error={errorOf("grounding.contextTokens")}
        />
        <ConflictingValue draft={draft} name="contextTokens" />
        <TextField
          label={s.maxSearches}
          help={t.maxSearchesHelp}
          guide="chat#further-searches"
          inputMode="numeric"
          readOnly={!mayChange}
          value={value.maxSearches}
          onChange={(maxSearches) => change({ maxSearches })}
          error={errorOf("grounding.maxSearches")}
        />
        <ConflictingValue draft={draft} name="maxSearches" />
      </Section>
      <Section title={t.sources} lead={t.sourcesLead} guide="chat#how-the-agent-keeps-to-its-sources" beside>
        <Select
          label={s.mode}
          options={[
            ["strict", s.strict],
            ["general", s.general]
          ]}
          disabled={!mayChange}
          value={value.mode}
          onChange={(mode) => change({ mode })}
        />
        <ConflictingValue draft={draft} name="mode" />
        <Select
          label={s.unsupported}
          options={[
            ["annotate", s.annotate],
            ["withhold", s.withhold],
            ["handoff", s.handoff]
          ]}
          disabled={!mayChange}
          value={value.unsupported}
          onChange={(unsupported) => change({ unsupported })}
        />
        <ConflictingValue draft={draft} name="unsupported" />
      </Section>
      <MaskingFields draft={draft} change={change} mayChange={mayChange} errorOf={errorOf} />
      {general === null || isOutdated(general) ? null : <Problem problem={general} />}
      {mayChange ? (
        <Actions sticky>
          <DraftState draft={draft}>{save.isSuccess ? done : ""}</DraftState>
          <span className={css["note"]}>
            <TextField
              compact
              label={t.note}
              placeholder={t.notePlaceholder}
              value={note}
              onChange={setNote}
              error={errorOf("note")}
            />
          </span>
          <Button busy={save.isPending} onClick={() => save.mutate(false)}>
            {t.draft}
          </Button>
          <Button kind="primary" type="submit" busy={save.isPending}>
            {common.save}
          </Button>
        </Actions>
      ) : null}
    </Form>
  )
}

const Settings = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const mayChange = atLeast(user.role, "admin")
  return (
    <AgentPart
      part="settings"
      showsId
      agent={agent}
      user={user}
      lead={t.lead}
      narrow
      actions={
        mayChange ? (
          <Menu
            actions={[
              {
                label: t.removal,
                does: {
                  title: t.removal,
                  question: t.question(agent.name),
                  action: t.removal,
                  onConfirm: async () => {
                    await deleteAgent(agent.id)
                    // Another page may have been opened meanwhile.
                    if (window.location.pathname.includes(agent.id)) navigate("/agents")
                    await queries.invalidateQueries({ queryKey: agents.queryKey, exact: true })
                  }
                }
              }
            ]}
          />
        ) : null
      }
    >
      <SettingsForm agent={agent} mayChange={mayChange} />
    </AgentPart>
  )
}

export default Settings
