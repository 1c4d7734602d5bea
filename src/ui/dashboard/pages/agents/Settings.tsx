/** What an agent is told, and how it searches. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { type Agent, patchAgent } from "../../api/Agents.ts"
import { ApiError } from "../../api/Client.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { LongText, TextField } from "../../components/Field.tsx"
import { Card } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"

const words = texts(
  {
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
    minScore: "Least score",
    minScoreHelp: "0 to 1. Empty: what suits the embedding model."
  },
  {
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
    minScoreHelp: "0 bis 1. Leer: was zum Einbettungsmodell passt."
  }
)

const numberOrNull = (text: string) => (text.trim() === "" ? null : Number(text.replace(",", ".")))

/** What is wrong with a field, where the service says that something is. */
const useComplaint = () => {
  const reason = useReason()
  return (problem: Error | null, field: string) =>
    problem instanceof ApiError && JSON.stringify(problem.details).includes(`"${field}"`)
      ? reason(problem).sentence
      : undefined
}

const Settings = ({ agent, mayChange }: { readonly agent: Agent; readonly mayChange: boolean }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const complaint = useComplaint()
  const queries = useQueryClient()
  const [name, setName] = useState(agent.name)
  const [instructions, setInstructions] = useState(agent.instructions)
  const [greeting, setGreeting] = useState(agent.greeting ?? "")
  const [model, setModel] = useState(agent.model ?? "")
  const [topK, setTopK] = useState(String(agent.retrieval.topK))
  const [minScore, setMinScore] = useState(
    agent.retrieval.minScore === null ? "" : String(agent.retrieval.minScore)
  )
  const save = useMutation({
    mutationFn: () =>
      patchAgent(agent.id, {
        name,
        instructions,
        greeting: greeting === "" ? null : greeting,
        model: model.trim() === "" ? null : model,
        retrieval: { topK: Number(topK), minScore: numberOrNull(minScore) }
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["agents"] })
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form onSubmit={submit} style={{ display: "contents" }}>
      <Card title={t.voice}>
        <TextField
          label={common.name}
          isRequired
          isReadOnly={!mayChange}
          value={name}
          onChange={setName}
          error={complaint(save.error, "name")}
        />
        <LongText
          label={t.instructions}
          help={t.instructionsHelp}
          rows={8}
          isReadOnly={!mayChange}
          value={instructions}
          onChange={setInstructions}
          error={complaint(save.error, "instructions")}
        />
        <LongText
          label={t.greeting}
          help={t.greetingHelp}
          rows={2}
          isReadOnly={!mayChange}
          value={greeting}
          onChange={setGreeting}
          error={complaint(save.error, "greeting")}
        />
        <TextField
          label={t.model}
          help={t.modelHelp}
          isReadOnly={!mayChange}
          value={model}
          onChange={setModel}
          error={complaint(save.error, "model")}
        />
      </Card>
      <Card title={t.search}>
        <TextField
          label={t.topK}
          help={t.topKHelp}
          inputMode="numeric"
          isReadOnly={!mayChange}
          value={topK}
          onChange={setTopK}
          error={complaint(save.error, "topK")}
        />
        <TextField
          label={t.minScore}
          help={t.minScoreHelp}
          inputMode="decimal"
          isReadOnly={!mayChange}
          value={minScore}
          onChange={setMinScore}
          error={complaint(save.error, "minScore")}
        />
      </Card>
      {save.error === null ? null : <Problem problem={save.error} />}
      {mayChange ? (
        <Actions>
          <span role="status">{save.isSuccess ? common.saved : ""}</span>
          <Button kind="primary" type="submit" busy={save.isPending}>
            {common.save}
          </Button>
        </Actions>
      ) : null}
    </form>
  )
}

export default Settings
