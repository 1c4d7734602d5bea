/** Instructions and search settings of an agent. */
import type { Agent } from "../../api/Agents.ts"
import { isOutdated } from "../../api/Client.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { LongText, Select, Switch, TextField } from "../../components/Field.tsx"
import { Card } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Conflict, DraftState, Theirs } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { ModelField, StyleFields } from "./StyleFields.tsx"
import { MaskingFields } from "./MaskingFields.tsx"
import { useSettingsWords } from "./settingsWords.ts"
import { useAgentForm } from "./useAgentForm.ts"

const words = texts(
  {
    voice: "Voice",
    instructionsHelp: "How it should speak, what it should do, and what it should leave to people.",
    greeting: "Greeting",
    greetingHelp: "What the widget says first.",
    modelHelp: "Empty: the model that the service was configured with.",
    streamReasoning: "Send what the model thinks in streams of the API",
    on: "yes",
    off: "no",
    search: "Search",
    topKHelp: "1 to 20. More gives the model more to go by, and costs more.",
    minScoreHelp: "0 to 1. Empty: what suits the embedding model.",
    contextTokensHelp: "500 to 32,000. How much of the sources the model reads with a question.",
    maxSearchesHelp: "0 to 8. How often the model may search again before it answers.",
    sources: "Faithfulness to the sources",
    version: "This change",
    note: "Note",
    noteHelp: "Why: shown with the version.",
    draft: "Keep as a draft",
    drafted: (version: number) => `Kept as version ${version}, which no turn uses. It is under Versions.`
  },
  {
    voice: "Stimme",
    instructionsHelp: "Wie er sprechen, was er tun und was er Menschen überlassen soll.",
    greeting: "Begrüßung",
    greetingHelp: "Was das Widget zuerst sagt.",
    modelHelp: "Leer: das Modell, mit dem der Dienst eingerichtet ist.",
    streamReasoning: "In Streams der API senden, was das Modell überlegt",
    on: "ja",
    off: "nein",
    search: "Suche",
    topKHelp: "1 bis 20. Mehr gibt dem Modell mehr Anhalt und kostet mehr.",
    minScoreHelp: "0 bis 1. Leer: was zum Einbettungsmodell passt.",
    contextTokensHelp: "500 bis 32.000. Wie viel das Modell zu einer Frage aus den Quellen liest.",
    maxSearchesHelp: "0 bis 8. Wie oft das Modell noch einmal suchen darf, bevor es antwortet.",
    sources: "Treue zu den Quellen",
    version: "Diese Änderung",
    note: "Notiz",
    noteHelp: "Warum: steht bei der Version.",
    draft: "Als Entwurf ablegen",
    drafted: (version: number) =>
      `Abgelegt als Version ${version}, die noch niemandem antwortet. Sie steht unter Versionen.`
  }
)

const Settings = ({ agent, mayChange }: { readonly agent: Agent; readonly mayChange: boolean }) => {
  const t = useText(words)
  const s = useSettingsWords()
  const common = useText(everywhere)
  const form = useAgentForm(agent)
  const { draft, errorOf, general, note, save, setNote } = form
  const { change, value } = draft
  const done = save.variables === false ? t.drafted(save.data?.agent.version ?? agent.version) : common.saved
  return (
    <Form onSubmit={() => save.mutate(true)}>
      <Conflict draft={draft} problem={save.error} />
      <Card title={t.voice} guide="chat">
        <TextField
          label={common.name}
          isRequired
          isReadOnly={!mayChange}
          value={value.name}
          onChange={(name) => change({ name })}
          error={errorOf("name")}
        />
        <Theirs draft={draft} name="name" />
        <LongText
          label={s.instructions}
          help={t.instructionsHelp}
          guide="chat"
          rows={8}
          isReadOnly={!mayChange}
          value={value.instructions}
          onChange={(instructions) => change({ instructions })}
          error={errorOf("instructions")}
        />
        <Theirs draft={draft} name="instructions" />
        <LongText
          label={t.greeting}
          help={t.greetingHelp}
          rows={2}
          isReadOnly={!mayChange}
          value={value.greeting}
          onChange={(greeting) => change({ greeting })}
          error={errorOf("greeting")}
        />
        <Theirs draft={draft} name="greeting" />
        <ModelField form={form} help={t.modelHelp} isReadOnly={!mayChange} />
        <StyleFields form={form} isReadOnly={!mayChange} />
        <Switch
          label={t.streamReasoning}
          isDisabled={!mayChange}
          isSelected={value.streamReasoning}
          onChange={(streamReasoning) => change({ streamReasoning })}
        />
        <Theirs draft={draft} name="streamReasoning" shown={(on) => (on === true ? t.on : t.off)} />
      </Card>
      <Card title={t.search} guide="retrieval">
        <TextField
          label={s.topK}
          help={t.topKHelp}
          guide="retrieval"
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={value.topK}
          onChange={(topK) => change({ topK })}
          error={errorOf("retrieval.topK")}
        />
        <Theirs draft={draft} name="topK" />
        <TextField
          label={s.minScore}
          help={t.minScoreHelp}
          guide="retrieval#how-chunks-are-scored"
          inputMode="decimal"
          isReadOnly={!mayChange}
          value={value.minScore}
          onChange={(minScore) => change({ minScore })}
          error={errorOf("retrieval.minScore")}
        />
        <Theirs draft={draft} name="minScore" />
        <TextField
          label={s.contextTokens}
          help={t.contextTokensHelp}
          guide="chat#how-the-agent-keeps-to-its-sources"
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={value.contextTokens}
          onChange={(contextTokens) => change({ contextTokens })}
          error={errorOf("grounding.contextTokens")}
        />
        <Theirs draft={draft} name="contextTokens" />
        <TextField
          label={s.maxSearches}
          help={t.maxSearchesHelp}
          guide="chat#further-searches"
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={value.maxSearches}
          onChange={(maxSearches) => change({ maxSearches })}
          error={errorOf("grounding.maxSearches")}
        />
        <Theirs draft={draft} name="maxSearches" />
      </Card>
      <Card title={t.sources} guide="chat#how-the-agent-keeps-to-its-sources">
        <Select
          label={s.mode}
          options={[
            ["strict", s.strict],
            ["general", s.general]
          ]}
          isDisabled={!mayChange}
          value={value.mode}
          onChange={(mode) => change({ mode })}
        />
        <Theirs draft={draft} name="mode" />
        <Select
          label={s.unsupported}
          options={[
            ["annotate", s.annotate],
            ["withhold", s.withhold],
            ["handoff", s.handoff]
          ]}
          isDisabled={!mayChange}
          value={value.unsupported}
          onChange={(unsupported) => change({ unsupported })}
        />
        <Theirs draft={draft} name="unsupported" />
      </Card>
      <MaskingFields draft={draft} change={change} mayChange={mayChange} errorOf={errorOf} />
      {general === null || isOutdated(general) ? null : <Problem problem={general} />}
      {mayChange ? (
        <Card title={t.version} guide="versions">
          <TextField
            label={t.note}
            help={t.noteHelp}
            value={note}
            onChange={setNote}
            error={errorOf("note")}
          />
        </Card>
      ) : null}
      {mayChange ? (
        <Actions>
          <DraftState draft={draft}>{save.isSuccess ? done : ""}</DraftState>
          <Button busy={save.isPending} onPress={() => save.mutate(false)}>
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

export default Settings
