/** Test cases: questions for an agent before publishing, and the expected replies. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query"
import { deleteTestCase, exportAddress, type TestCase, testCases } from "../../api/TestCases.ts"
import { atLeast } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Menu } from "../../components/Menu.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { Empty } from "../../components/Page.tsx"
import { Cell, RowActions } from "../../components/RowActions.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentPart, type PartProps } from "./AgentPart.tsx"
import { download } from "../../window/download.ts"
import { ImportForm, TestCaseForm } from "./TestCaseForm.tsx"

const words = texts(
  {
    title: "Test cases",
    lead: "Questions with the sources and facts that their replies must have, to ask before a version is published.",
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
    origin: "Origin",
    refuses: "declines to answer",
    answers: "answers",
    grounded: "supported by sources",
    object: "a JSON object",
    nothing: "an answer",
    removal: "Delete test case",
    removalOf: (question: string) => `“${question}” is asked no longer.`,
    written: "Written here",
    run: "Turn",
    feedback: "Feedback",
    human: "Answer of the team",
    file: "File"
  },
  {
    title: "Testfälle",
    lead: "Fragen mit den Quellen und Aussagen, die ihre Antworten haben müssen: zu stellen, bevor eine Version veröffentlicht wird.",
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
    origin: "Herkunft",
    refuses: "lehnt ab",
    answers: "antwortet",
    grounded: "belegt durch Quellen",
    object: "ein JSON-Objekt",
    nothing: "eine Antwort",
    removal: "Testfall löschen",
    removalOf: (question: string) => `„${question}“ wird dann nicht mehr gefragt.`,
    written: "Hier geschrieben",
    run: "Antwort",
    feedback: "Rückmeldung",
    human: "Antwort des Teams",
    file: "Datei"
  }
)

const Actions = ({ agentId, testCase }: { readonly agentId: string; readonly testCase: TestCase }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  return (
    <RowActions
      of={testCase.question}
      id={testCase.id}
      actions={[
        {
          label: common.edit,
          does: {
            title: t.edit,
            form: (close) => <TestCaseForm agentId={agentId} stored={testCase} onClose={close} />,
            wide: true
          }
        },
        {
          label: common.delete,
          does: {
            title: t.removal,
            question: t.removalOf(testCase.question),
            action: common.delete,
            onConfirm: () =>
              deleteTestCase(testCase.id).then(() =>
                queries.invalidateQueries({ queryKey: testCases(agentId).queryKey })
              )
          }
        }
      ]}
    />
  )
}

const Expected = (testCase: TestCase) => {
  const t = useText(words)
  const { criterion, expectFacts, expectGrounding, expectRefusal, expectSources, responseSchema } = testCase
  const all = [...expectSources, ...expectFacts, ...(criterion === null ? [] : [criterion])]
  const kinds = [
    ...(expectRefusal === null ? [] : [expectRefusal ? t.refuses : t.answers]),
    ...(expectGrounding === true ? [t.grounded] : []),
    ...(responseSchema === null ? [] : [t.object])
  ]
  return (
    <Cell notes={all.length === 0 && kinds.length === 0 ? [t.nothing] : all}>
      {kinds.length === 0 ? null : <Badge tone="neutral">{kinds.join(", ")}</Badge>}
    </Cell>
  )
}

const TestCases = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const agentId = agent.id
  const mayChange = atLeast(user.role, "admin")
  const query = useInfiniteQuery(testCases(agentId))
  const adding = useCreateDialog({
    title: t.add,
    wide: true,
    form: (close) => <TestCaseForm agentId={agentId} stored={null} onClose={close} />
  })
  const hasNone = isEmptyList(query, ({ cases }) => cases)
  const menu = (
    <Menu
      actions={[
        ...(mayChange
          ? [
              {
                label: t.import,
                does: {
                  title: t.importTitle,
                  form: (close: () => void) => <ImportForm agentId={agentId} onClose={close} />
                }
              }
            ]
          : []),
        ...(hasNone ? [] : [{ label: t.export, does: () => download(exportAddress(agentId)) }])
      ]}
    />
  )
  const add = mayChange ? adding.button : null
  return (
    <AgentPart
      part="cases"
      agent={agent}
      user={user}
      lead={t.lead}
      guide="evaluation"
      actions={
        <>
          {menu}
          {hasNone ? null : add}
        </>
      }
    >
      {adding.dialog}
      <Listing
        query={query}
        rowsOf={({ cases }) => cases}
        textOf={({ expectFacts, expectSources, note, question }) =>
          [question, note ?? "", ...expectFacts, ...expectSources].join(" ")
        }
        empty={<Empty title={t.empty} lead={t.emptyLead} action={add} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.question,
            cell: ({ note, question }) => (
              <Cell notes={[note]}>
                <strong>{question}</strong>
              </Cell>
            )
          },
          { title: t.expected, cell: (testCase) => <Expected {...testCase} /> },
          { title: t.origin, cell: ({ origin }) => t[origin] }
        ]}
        actions={mayChange ? (testCase) => <Actions agentId={agentId} testCase={testCase} /> : null}
      />
    </AgentPart>
  )
}

export default TestCases
