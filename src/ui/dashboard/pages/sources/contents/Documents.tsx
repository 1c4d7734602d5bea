/** The searchable list of a source's documents. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { Link } from "wouter"
import { documents } from "../../../api/sources/Contents.ts"
import type { SourceDetail } from "../../../api/Sources.ts"
import { Badge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { TextField } from "../../../components/Field.tsx"
import { Loaded, Section } from "../../../components/Page.tsx"
import { Cell } from "../../../components/RowActions.tsx"
import { Table } from "../../../components/Table.tsx"
import { commonTexts } from "../../../text/commonTexts.ts"
import { useFormat } from "../../../text/Format.ts"
import { texts, useText } from "../../../text/Language.tsx"
import css from "./Contents.module.css"
import { LoadMore } from "../../../components/LoadMore.tsx"

const words = texts(
  {
    title: "Content",
    find: "Find a document",
    findHelp: "Part of its title or its address.",
    document: "Document",
    passages: "Passages",
    read: "Read",
    excluded: (count: string) => `${count} excluded`,
    none: "Nothing has been read yet.",
    noneFound: "No document has that in its title or its address."
  },
  {
    title: "Inhalt",
    find: "Dokument finden",
    findHelp: "Teil des Titels oder der Adresse.",
    document: "Dokument",
    passages: "Abschnitte",
    read: "Gelesen",
    excluded: (count: string) => `${count} ausgenommen`,
    none: "Noch wurde nichts gelesen.",
    noneFound: "Kein Dokument hat das in Titel oder Adresse."
  }
)

export const Documents = ({ source }: { readonly source: SourceDetail }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago, number } = useFormat()
  const [typed, setTyped] = useState("")
  const [searchedText, setSearchedText] = useState("")
  const query = useInfiniteQuery(
    documents(source.id, searchedText, `${source.latestJob?.id} ${source.latestJob?.status}`)
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setSearchedText(typed.trim())
  }
  return (
    <Section title={t.title}>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.documents)
          if (rows.length === 0 && searchedText === "") return <p className={css["soft"]}>{t.none}</p>
          return (
            <>
              {rows.length < 8 && searchedText === "" ? null : (
                <form role="search" className={css["search"]} onSubmit={submit}>
                  <TextField label={t.find} placeholder={t.findHelp} value={typed} onChange={setTyped} />
                  <Button type="submit">{common.search}</Button>
                </form>
              )}
              {rows.length === 0 ? (
                <p className={css["soft"]}>{t.noneFound}</p>
              ) : (
                <Table
                  label={t.title}
                  rows={rows}
                  keyOf={({ id }) => id}
                  columns={[
                    {
                      title: t.document,
                      cell: ({ id, title, uri }) => (
                        <Cell notes={[uri]}>
                          <Link lang="" data-row href={`/sources/${source.id}/documents/${id}`}>
                            {title === "" ? uri : title}
                          </Link>
                        </Cell>
                      )
                    },
                    {
                      title: t.passages,
                      alignEnd: true,
                      noWrap: true,
                      cell: ({ excluded, passages }) => (
                        <>
                          {excluded === 0 ? null : (
                            <>
                              <Badge tone="warn">{t.excluded(number(excluded))}</Badge>{" "}
                            </>
                          )}
                          {number(passages)}
                        </>
                      )
                    },
                    { title: t.read, alignEnd: true, noWrap: true, cell: ({ readAt }) => ago(readAt) }
                  ]}
                />
              )}
            </>
          )
        }}
      </Loaded>
      <LoadMore query={query} />
    </Section>
  )
}
