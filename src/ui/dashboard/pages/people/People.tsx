/** The people who write to the agents: search, export and erasure (data protection). */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { erasePerson, exportAddress, people } from "../../api/People.ts"
import { Button } from "../../components/Button.tsx"
import { CopyableId } from "../../components/CopyableId.tsx"
import { TextField } from "../../components/Field.tsx"
import { Empty, Page } from "../../components/Page.tsx"
import { Cell, RowActions } from "../../components/RowActions.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { download } from "../../window/download.ts"
import css from "./People.module.css"
import { Listing } from "../../components/Listing.tsx"

const words = texts(
  {
    title: "People",
    lead: "Who has written to the agents. Somebody may ask what is stored about them, or that it be erased.",
    find: "Your own ID of the person",
    empty: "Nobody here",
    emptyLead: "People appear when they write, and are found by the whole of the ID that you gave them.",
    person: "Person",
    id: "ID",
    anonymous: "Anonymous",
    conversations: "Conversations",
    since: "Since",
    export: "Export",
    erase: "Erase",
    erasure: "Erase this person",
    question: (name: string) =>
      `Everything that is stored about ${name} will be gone: messages, files, traces. It cannot be undone.`
  },
  {
    title: "Personen",
    lead: "Wer den Agenten geschrieben hat. Jede Person darf fragen, was über sie gespeichert ist, und die Löschung verlangen.",
    find: "Ihre eigene ID der Person",
    empty: "Niemand hier",
    emptyLead:
      "Personen erscheinen, wenn sie schreiben, und werden über die ganze ID gefunden, die sie bekommen haben.",
    person: "Person",
    id: "ID",
    anonymous: "Anonym",
    conversations: "Gespräche",
    since: "Seit",
    export: "Exportieren",
    erase: "Löschen",
    erasure: "Diese Person löschen",
    question: (name: string) =>
      `Alles, was über ${name} gespeichert ist, ist dann fort: Nachrichten, Dateien, Abläufe. Das lässt sich nicht rückgängig machen.`
  }
)

const People = () => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago, number } = useFormat()
  const queries = useQueryClient()
  const [typed, setTyped] = useState("")
  const [searchedId, setSearchedId] = useState("")
  const query = useInfiniteQuery(people(searchedId))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setSearchedId(typed.trim())
  }
  return (
    <Page title={t.title} lead={t.lead} guide="privacy">
      <form role="search" className={css["search"]} onSubmit={submit}>
        <TextField compact label={t.find} placeholder={t.find} value={typed} onChange={setTyped} />
        <Button type="submit">{common.search}</Button>
      </form>
      <Listing
        query={query}
        rowsOf={(page) => page.endUsers}
        empty={<Empty title={t.empty} lead={t.emptyLead} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.person,
            cell: ({ id, externalId }) => (
              <Cell notes={[<CopyableId key="id" id={id} label={`${t.id}, ${externalId ?? t.anonymous}`} />]}>
                <strong title={id}>{externalId ?? t.anonymous}</strong>
              </Cell>
            )
          },
          {
            title: t.conversations,
            alignEnd: true,
            cell: ({ conversations }) => number(conversations)
          },
          { title: t.since, noWrap: true, cell: ({ createdAt }) => ago(createdAt) }
        ]}
        actions={({ id, externalId }) => (
          <RowActions
            of={externalId ?? id}
            actions={[
              { label: t.export, does: () => download(exportAddress(id), `${id}.ndjson`) },
              {
                label: t.erase,
                does: {
                  title: t.erasure,
                  question: t.question(externalId ?? id),
                  action: t.erase,
                  onConfirm: () =>
                    erasePerson(id).then(() => queries.invalidateQueries({ queryKey: ["people"] }))
                }
              }
            ]}
          />
        )}
      />
    </Page>
  )
}

export default People
