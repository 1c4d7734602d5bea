/** Runs an agent's search for a question and shows the passages. */
import { useMutation } from "@tanstack/react-query"
import { type FormEvent, lazy, Suspense, useState } from "react"
import { searchPassages } from "../../../api/sources/Contents.ts"
import { Button } from "../../../components/Button.tsx"
import { TextField } from "../../../components/Field.tsx"
import { Section } from "../../../components/Page.tsx"
import { Problem } from "../../../components/Problem.tsx"
import { texts, useText } from "../../../text/Language.tsx"
import css from "./Contents.module.css"

/** Loaded when there is a result, because it needs the Markdown parser. */
const Passages = lazy(() =>
  import("../../../components/replies/Passages.tsx").then((module) => ({ default: module.Passages }))
)

const words = texts(
  {
    title: "Test the search",
    question: "Question",
    placeholder: "As a customer would ask it",
    find: "Find passages",
    none: "No passage was found. Add a source that tells, or ask with other words.",
    byWordsAlone:
      "The question could not be compared by its meaning just now: these were found by words alone."
  },
  {
    title: "Suche ausprobieren",
    question: "Frage",
    placeholder: "So, wie Kunden fragen würden",
    find: "Abschnitte finden",
    none: "Kein Abschnitt gefunden. Bitte eine Quelle hinzufügen, die es sagt, oder anders fragen.",
    byWordsAlone:
      "Die Frage ließ sich gerade nicht nach ihrem Sinn vergleichen: Diese wurden allein nach Wörtern gefunden."
  }
)

/** Number of passages that are shown. */
const maxPassages = 8

export const TestSearch = ({ agentId }: { readonly agentId: string }) => {
  const t = useText(words)
  const [query, setQuery] = useState("")
  const search = useMutation({
    mutationFn: () => searchPassages(agentId, { query: query.trim(), topK: maxPassages })
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (query.trim() !== "") search.mutate()
  }
  const passages = search.data?.passages ?? []
  return (
    <Section title={t.title} guide="retrieval">
      <form className={css["search"]} onSubmit={submit}>
        <TextField
          label={t.question}
          placeholder={t.placeholder}
          maxLength={1_000}
          value={query}
          onChange={setQuery}
        />
        <Button type="submit" busy={search.isPending}>
          {t.find}
        </Button>
      </form>
      {search.error === null ? null : <Problem problem={search.error} />}
      {search.data === undefined ? null : (
        <div role="status">
          {search.data.byWordsAlone ? <p className={css["soft"]}>{t.byWordsAlone}</p> : null}
          {passages.length === 0 ? <p className={css["soft"]}>{t.none}</p> : null}
        </div>
      )}
      {passages.length === 0 ? null : (
        <Suspense>
          <Passages
            passages={passages.map(({ id, ...passage }, index) => ({
              ...passage,
              index: index + 1,
              chunkId: id
            }))}
            scores={passages}
            linkOf={({ documentId, sourceId }) => `/sources/${sourceId}/documents/${documentId}`}
          />
        </Suspense>
      )}
    </Section>
  )
}
