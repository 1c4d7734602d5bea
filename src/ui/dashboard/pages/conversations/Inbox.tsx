/** The inbox: the list of conversations, the open conversation, and its person. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { useCallback, useEffect, useState } from "react"
import { agents } from "../../api/Agents.ts"
import { inboxItems } from "../../api/Inbox.ts"
import type { User } from "../../api/Session.ts"
import { Keyboard, MessagesSquare } from "lucide-react"
import { Button } from "../../components/Button.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { usePageFocus } from "../../components/Page.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { setPageName } from "../../window/windowTitle.ts"
import { KeptDrafts } from "../../forms/DraftNotes.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { ConversationList } from "./ConversationList.tsx"
import { Filters } from "./Filters.tsx"
import css from "./Inbox.module.css"
import { useLive } from "./useLive.ts"
import { ShortcutSheet } from "./ShortcutSheet.tsx"
import { PersonPane } from "./PersonPane.tsx"
import { Thread } from "./Thread.tsx"
import { useFilter } from "./useFilter.ts"
import { words as sharedWords } from "./words.ts"

const words = texts(
  {
    choose: "Choose a conversation to read it.",
    move: "next and previous",
    all: "all shortcuts",
    shortcuts: "Keyboard shortcuts"
  },
  {
    choose: "Wählen Sie ein Gespräch, um es zu lesen.",
    move: "nächstes und voriges",
    all: "alle Tastenkürzel",
    shortcuts: "Tastenkürzel"
  }
)

interface OpenConversationProps {
  readonly id: string
  readonly user: User
  readonly search: string
}

const OpenConversation = ({ id, search, user }: OpenConversationProps) => {
  const queries = useQueryClient()
  const onChange = useCallback(
    () => void queries.invalidateQueries({ queryKey: ["conversations", "one", id] }),
    [queries, id]
  )
  const live = useLive(id, onChange)
  const [runId, setRunId] = useState<string | null>(null)
  const [isOpen, setOpen] = useState(false)
  const onTrace = useCallback((run: string | null) => {
    setRunId(run)
    if (run !== null) setOpen(true)
  }, [])
  const paneProps = { id, isOpen, live, onTrace, runId, search, user }
  return (
    <>
      <Thread {...paneProps} onDetails={() => setOpen(!isOpen)} />
      <PersonPane
        {...paneProps}
        onClose={() => {
          setOpen(false)
          setRunId(null)
        }}
      />
    </>
  )
}

const Inbox = ({ id, user }: { readonly id: string | null; readonly user: User }) => {
  const t = useText(words)
  const names = useText(sharedWords)
  const main = usePageFocus()
  const { filter, search, setFilter } = useFilter()
  const { data: items, failureCount, isPending } = useQuery(inboxItems)
  const loadedAgents = useAllPages(useInfiniteQuery(agents), (page) => page.agents) ?? []
  useEffect(() => {
    if (id === null) setPageName(names.title)
  }, [id, names.title])
  const [isSheetOpen, setSheetOpen] = useState(false)
  useShortcuts({ "?": () => setSheetOpen(true) })
  const Heading = id === null ? "h1" : "h2"
  return (
    <main
      ref={main}
      id="content"
      tabIndex={-1}
      className={css["inbox"]}
      aria-label={names.title}
      data-fullscreen={id === null ? undefined : ""}
    >
      <section className={css["list"]} aria-label={names.title}>
        <header className={css["head"]}>
          <Heading className={css["title"]}>{names.title}</Heading>
          <span className={css["keys"]}>
            <Button kind="quiet" icon aria-label={t.shortcuts} onClick={() => setSheetOpen(true)}>
              <Keyboard aria-hidden size={17} />
            </Button>
          </span>
        </header>
        <Filters
          filter={filter}
          onChange={setFilter}
          agents={loadedAgents}
          labels={items?.labels ?? []}
          views={items?.views ?? []}
          user={user}
        />
        <KeptDrafts />
        <ConversationList
          filter={filter}
          search={search}
          current={id}
          labels={items?.labels ?? []}
          isWaiting={isPending && failureCount === 0}
          onClear={() => setFilter({})}
        />
      </section>
      {id === null ? (
        <div className={css["choose"]}>
          <MessagesSquare aria-hidden size={28} strokeWidth={1.5} />
          <p>{t.choose}</p>
          <p className={css["hint"]}>
            <kbd>j</kbd> <kbd>k</kbd> {t.move} <kbd>?</kbd> {t.all}
          </p>
        </div>
      ) : (
        <OpenConversation key={id} id={id} user={user} search={search} />
      )}
      <ShortcutSheet isOpen={isSheetOpen} onClose={() => setSheetOpen(false)} />
    </main>
  )
}

export default Inbox
