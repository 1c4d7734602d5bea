/** Test cases: questions for an agent before publishing, and the expected replies. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { deleteTestCase, exportAddress, type TestCase, testCases } from "../../api/TestCases.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Listing, useAdding } from "../../components/Listing.tsx"
import { Empty } from "../../components/Page.tsx"
import { RowButton, RowConfirm } from "../../components/RowActions.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { ImportForm, TestCaseForm } from "./TestCaseForm.tsx"
import css from "./TestCases.module.css"

const words = texts(
  {
    title: "Test cases",
    add: "New test case",
    edit: "Edit test case",
    import: "Import",
    importTitle: "Import test cases",
    export: "Export",
    empty: "No test case yet",
    emptyLead:
      "A test case is a question, with the sources and facts that its reply has to have. “spoke eval --agent” asks them all.",
    question: "Question",
    expected: "Expected",
    origin: "From",
    refuses: "declines to answer",
    answers: "answers",
    nothing: "an answer",
    actions: "Actions",
    removal: "Delete test case",
    removalOf: (question: string) => `“${question}” is asked no longer.`,
    written: "written here",
    run: "a turn",
    feedback: "feedback",
    human: "an answer of the team",
    file: "a file"
  },
  {
    title: "Testfälle",
    add: "Neuer Testfall",
    edit: "Testfall bearbeiten",
    import: "Importieren",
    importTitle: "Testfälle importieren",
    export: "Exportieren",
    empty: "Noch kein Testfall",
    emptyLead:
      "Ein Testfall ist eine Frage, mit den Quellen und Aussagen, die ihre Antwort haben muss. „spoke eval --agent“ stellt sie alle.",
    question: "Frage",
    expected: "Erwartet",
    origin: "Aus",
    refuses: "lehnt ab",
    answers: "antwortet",
    nothing: "eine Antwort",
    actions: "Aktionen",
    removal: "Testfall löschen",
    removalOf: (question: string) => `„${question}“ wird dann nicht mehr gefragt.`,
    written: "hier geschrieben",
    run: "einer Antwort",
    feedback: "einer Rückmeldung",
    human: "einer Antwort des Teams",
    file: "einer Datei"
  }
)

interface Props {
  readonly agentId: string
  readonly mayChange: boolean
}

const Actions = ({ agentId, found }: { readonly agentId: string; readonly found: TestCase }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [editing, setEditing] = useState(false)
  return (
    <span className={css["actions"]}>
      <RowButton label={common.edit} of={found.question} onPress={() => setEditing(true)} />
      <Dialog title={t.edit} isOpen={editing} onClose={() => setEditing(false)} wide>
        <TestCaseForm agentId={agentId} stored={found} onClose={() => setEditing(false)} />
      </Dialog>
      <RowConfirm
        of={found.question}
        title={t.removal}
        question={t.removalOf(found.question)}
        action={common.delete}
        onConfirm={async () => {
          await deleteTestCase(found.id)
          await queries.invalidateQueries({ queryKey: testCases(agentId).queryKey })
        }}
      />
    </span>
  )
}

const Expected = ({ criterion, expectFacts, expectRefusal, expectSources }: TestCase) => {
  const t = useText(words)
  const all = [...expectSources, ...expectFacts, ...(criterion === null ? [] : [criterion])]
  return (
    <span className={css["question"]}>
      {expectRefusal === null ? null : (
        <span>
          <Badge tone="neutral">{expectRefusal ? t.refuses : t.answers}</Badge>
        </span>
      )}
      {all.map((text, place) => (
        // The same text may be a source and a fact.
        <span key={place} className={css["soft"]}>
          {text}
        </span>
      ))}
      {all.length === 0 && expectRefusal === null ? <span className={css["soft"]}>{t.nothing}</span> : null}
    </span>
  )
}

const TestCases = ({ agentId, mayChange }: Props) => {
  const t = useText(words)
  const query = useInfiniteQuery(testCases(agentId))
  const [isImporting, setImporting] = useState(false)
  const adding = useAdding({
    title: t.add,
    wide: true,
    form: (close) => <TestCaseForm agentId={agentId} stored={null} onClose={close} />
  })
  const add = mayChange ? (
    <>
      <Button onPress={() => setImporting(true)}>{t.import}</Button>
      {adding.button}
    </>
  ) : null
  return (
    <>
      {adding.dialog}
      <Dialog title={t.importTitle} isOpen={isImporting} onClose={() => setImporting(false)}>
        <ImportForm agentId={agentId} onClose={() => setImporting(false)} />
      </Dialog>
      <Listing
        query={query}
        rowsOf={({ cases }) => cases}
        empty={
          <Empty title={t.empty} action={<div className={css["bar"]}>{add}</div>}>
            {t.emptyLead}
          </Empty>
        }
        bar={
          <div className={css["bar"]}>
            <a href={exportAddress(agentId)} download>
              {t.export}
            </a>
            {add}
          </div>
        }
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.question,
            cell: ({ note, question }) => (
              <span className={css["question"]}>
                <strong>{question}</strong>
                {note === null ? null : <span className={css["soft"]}>{note}</span>}
              </span>
            )
          },
          { title: t.expected, cell: (found) => <Expected {...found} /> },
          { title: t.origin, cell: ({ origin }) => t[origin] },
          ...(mayChange
            ? [
                {
                  title: t.actions,
                  silent: true,
                  end: true,
                  cell: (found: TestCase) => <Actions agentId={agentId} found={found} />
                }
              ]
            : [])
        ]}
      />
    </>
  )
}

export default TestCases
