/** What an agent is told, and how it searches. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { type Agent, agent as agentQuery, patchAgent } from "../../api/Agents.ts"
import { isOutdated } from "../../api/Client.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { LongText, Select, TextField } from "../../components/Field.tsx"
import { Card } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Conflict, DraftState, Theirs } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { MaskingFields, maskingFieldsOf, maskingOf } from "./MaskingFields.tsx"

const words = texts(
  {
    title: (name: string) => `Settings of ${name}`,
    voice: "Voice",
    instructions: "Instructions",
    instructionsHelp: "How it should speak, what it should do, and what it should leave to people.",
    greeting: "Greeting",
    greetingHelp: "What the widget says first.",
    model: "Model",
    modelHelp: "Empty: the model that the service was configured with.",
    search: "Search",
    topK: "Passages per question",
    topKHelp: "1 to 20. More gives the model more to go by, and costs more.",
    minScore: "Minimum score",
    minScoreHelp: "0 to 1. Empty: what suits the embedding model.",
    contextTokens: "Context size in tokens",
    contextTokensHelp: "500 to 32,000. How much of the sources the model reads with a question.",
    maxSearches: "Further searches",
    maxSearchesHelp: "0 to 8. How often the model may search again before it answers.",
    sources: "Faithfulness to the sources",
    mode: "When the sources do not answer",
    strict: "Say that nothing was found",
    general: "Answer from general knowledge, and say so",
    unsupported: "When the sources do not support a reply",
    annotate: "Send it; its citations say so",
    withhold: "Send a refusal instead",
    handoff: "Hand over to a person",
    version: "This change",
    note: "Note",
    noteHelp: "Why: shown with the version.",
    draft: "Keep as a draft",
    drafted: (version: number) => `Kept as version ${version}, which no turn uses. It is under Versions.`
  },
  {
    title: (name: string) => `Einstellungen von ${name}`,
    voice: "Stimme",
    instructions: "Anweisungen",
    instructionsHelp: "Wie er sprechen, was er tun und was er Menschen überlassen soll.",
    greeting: "Begrüßung",
    greetingHelp: "Was das Widget zuerst sagt.",
    model: "Modell",
    modelHelp: "Leer: das Modell, mit dem der Dienst eingerichtet ist.",
    search: "Suche",
    topK: "Abschnitte je Frage",
    topKHelp: "1 bis 20. Mehr gibt dem Modell mehr Anhalt und kostet mehr.",
    minScore: "Mindestwert",
    minScoreHelp: "0 bis 1. Leer: was zum Einbettungsmodell passt.",
    contextTokens: "Kontextgröße in Tokens",
    contextTokensHelp: "500 bis 32.000. Wie viel das Modell zu einer Frage aus den Quellen liest.",
    maxSearches: "Weitere Suchen",
    maxSearchesHelp: "0 bis 8. Wie oft das Modell noch einmal suchen darf, bevor es antwortet.",
    sources: "Treue zu den Quellen",
    mode: "Wenn die Quellen nicht antworten",
    strict: "Sagen, dass nichts gefunden wurde",
    general: "Aus allgemeinem Wissen antworten und das sagen",
    unsupported: "Wenn die Quellen eine Antwort nicht stützen",
    annotate: "Senden; ihre Belege sagen es",
    withhold: "Stattdessen ablehnen",
    handoff: "An einen Menschen übergeben",
    version: "Diese Änderung",
    note: "Notiz",
    noteHelp: "Warum: steht bei der Version.",
    draft: "Als Entwurf ablegen",
    drafted: (version: number) =>
      `Abgelegt als Version ${version}, die noch niemandem antwortet. Sie steht unter Versionen.`
  }
)

const numberOrNull = (text: string) => (text.trim() === "" ? null : Number(text.replace(",", ".")))

const settingsOf = ({
  greeting,
  grounding: { contextTokens, maxSearches, mode, unsupported },
  instructions,
  model,
  name,
  retrieval: { minScore, topK }
}: Agent) => ({
  name,
  instructions,
  greeting: greeting ?? "",
  model: model ?? "",
  topK: String(topK),
  minScore: minScore === null ? "" : String(minScore),
  contextTokens: String(contextTokens),
  maxSearches: String(maxSearches),
  mode,
  unsupported
})

/** As it is typed. */
const fieldsOf = (agent: Agent) => ({
  ...settingsOf(agent),
  ...maskingFieldsOf(agent)
})

/** Where the service names what is wrong. */
const places = [
  "name",
  "instructions",
  "greeting",
  "model",
  "retrieval.topK",
  "retrieval.minScore",
  "grounding.contextTokens",
  "grounding.maxSearches",
  "masking.patterns",
  "masking.tools",
  "note"
] as const

const Settings = ({ agent, mayChange }: { readonly agent: Agent; readonly mayChange: boolean }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `agent.${agent.id}`,
    title: t.title(agent.name),
    stored: fieldsOf(agent)
  })
  const { change, value } = draft
  const [note, setNote] = useState("")
  const save = useMutation({
    mutationFn: (publish: boolean) =>
      patchAgent(agent.id, agent.version, {
        publish,
        from: agent.publishedVersion,
        ...(note.trim() === "" ? {} : { note }),
        name: value.name,
        instructions: value.instructions,
        greeting: value.greeting === "" ? null : value.greeting,
        model: value.model.trim() === "" ? null : value.model,
        retrieval: { topK: Number(value.topK), minScore: numberOrNull(value.minScore) },
        grounding: {
          mode: value.mode,
          unsupported: value.unsupported,
          contextTokens: Number(value.contextTokens),
          maxSearches: Number(value.maxSearches)
        },
        masking: maskingOf(value)
      }),
    onSuccess: ({ agent: saved }, publish) => {
      // What is typed is in the draft version then, and the form is of the published one.
      if (publish) draft.saved()
      else draft.discard()
      setNote("")
      queries.setQueryData(agentQuery(agent.id).queryKey, saved)
      return queries.invalidateQueries({ queryKey: ["agents"] })
    },
    onError: (problem) =>
      isOutdated(problem)
        ? queries.invalidateQueries({ queryKey: agentQuery(agent.id).queryKey, exact: true })
        : undefined
  })
  const { errorOf, general } = useIssues(save.error, places)
  const done = save.variables === false ? t.drafted(save.data?.agent.version ?? agent.version) : common.saved
  return (
    <Form onSubmit={() => save.mutate(true)}>
      <Conflict draft={draft} problem={save.error} />
      <Card title={t.voice}>
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
          label={t.instructions}
          help={t.instructionsHelp}
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
        <TextField
          label={t.model}
          help={t.modelHelp}
          isReadOnly={!mayChange}
          value={value.model}
          onChange={(model) => change({ model })}
          error={errorOf("model")}
        />
        <Theirs draft={draft} name="model" />
      </Card>
      <Card title={t.search}>
        <TextField
          label={t.topK}
          help={t.topKHelp}
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={value.topK}
          onChange={(topK) => change({ topK })}
          error={errorOf("retrieval.topK")}
        />
        <Theirs draft={draft} name="topK" />
        <TextField
          label={t.minScore}
          help={t.minScoreHelp}
          inputMode="decimal"
          isReadOnly={!mayChange}
          value={value.minScore}
          onChange={(minScore) => change({ minScore })}
          error={errorOf("retrieval.minScore")}
        />
        <Theirs draft={draft} name="minScore" />
        <TextField
          label={t.contextTokens}
          help={t.contextTokensHelp}
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={value.contextTokens}
          onChange={(contextTokens) => change({ contextTokens })}
          error={errorOf("grounding.contextTokens")}
        />
        <Theirs draft={draft} name="contextTokens" />
        <TextField
          label={t.maxSearches}
          help={t.maxSearchesHelp}
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={value.maxSearches}
          onChange={(maxSearches) => change({ maxSearches })}
          error={errorOf("grounding.maxSearches")}
        />
        <Theirs draft={draft} name="maxSearches" />
      </Card>
      <Card title={t.sources}>
        <Select
          label={t.mode}
          options={[
            ["strict", t.strict],
            ["general", t.general]
          ]}
          isDisabled={!mayChange}
          value={value.mode}
          onChange={(mode) => change({ mode })}
        />
        <Theirs draft={draft} name="mode" />
        <Select
          label={t.unsupported}
          options={[
            ["annotate", t.annotate],
            ["withhold", t.withhold],
            ["handoff", t.handoff]
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
        <Card title={t.version}>
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
