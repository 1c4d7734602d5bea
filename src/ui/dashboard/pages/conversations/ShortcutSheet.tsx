/** List of the inbox's keyboard shortcuts. */
import { Dialog } from "../../components/Dialog.tsx"
import { Switch } from "../../components/Checkboxes.tsx"
import { useShortcutSetting } from "../../window/useShortcuts.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./ShortcutSheet.module.css"

const words = texts(
  {
    title: "Keyboard shortcuts",
    on: "Use keyboard shortcuts",
    onHelp: "They never act while you type.",
    between: "then",
    next: "Next conversation",
    previous: "Previous conversation",
    search: "Search",
    reply: "Write a reply",
    note: "Write a private note",
    take: "Take over",
    close: "Close the conversation",
    inbox: "To the inbox, from any page",
    canned: "While you reply: insert a canned reply",
    sheet: "Show this sheet"
  },
  {
    title: "Tastenkürzel",
    on: "Tastenkürzel verwenden",
    onHelp: "Sie wirken nie, während Sie tippen.",
    between: "dann",
    next: "Nächstes Gespräch",
    previous: "Voriges Gespräch",
    search: "Suchen",
    reply: "Antwort schreiben",
    note: "Interne Notiz schreiben",
    take: "Übernehmen",
    close: "Gespräch schließen",
    inbox: "Zu den Gesprächen, von jeder Seite",
    canned: "Beim Antworten: Textbaustein einfügen",
    sheet: "Diese Übersicht zeigen"
  }
)

const keys = [
  ["j", "next"],
  ["k", "previous"],
  ["/", "search"],
  ["r", "reply"],
  ["n", "note"],
  ["t", "take"],
  ["e", "close"],
  ["g i", "inbox"],
  ["/", "canned"],
  ["?", "sheet"]
] as const

export const ShortcutSheet = ({
  isOpen,
  onClose
}: {
  readonly isOpen: boolean
  readonly onClose: () => void
}) => {
  const t = useText(words)
  const [isOn, choose] = useShortcutSetting()
  return (
    <Dialog title={t.title} isOpen={isOpen} onClose={onClose}>
      <dl className={css["keys"]}>
        {keys.map(([key, what]) => (
          <div key={what}>
            <dt>
              {key.split(" ").map((one, place) => (
                <span key={one}>
                  {place === 0 ? null : ` ${t.between} `}
                  <kbd>{one}</kbd>
                </span>
              ))}
            </dt>
            <dd>{t[what]}</dd>
          </div>
        ))}
      </dl>
      <Switch label={t.on} isSelected={isOn} onChange={choose} />
      <p>{t.onHelp}</p>
    </Dialog>
  )
}
