/** Why a source or a page was not read: a translation by the error code, or else the message of the service. */
import { useLanguage } from "../../text/Language.tsx"

/** German translations of the service's messages, by code. A message with another code is shown unchanged. */
const german: Readonly<Record<string, string>> = {
  already_listed: "Die Adresse kam schon vor.",
  artifact_missing: "Die hochgeladene Datei ist nicht mehr da. Bitte noch einmal hochladen.",
  artifact_unavailable: "Die hochgeladene Datei lässt sich gerade nicht laden.",
  asset: "Die Adresse endet wie ein Bild, ein Skript oder eine andere Datei ohne Text.",
  beyond_max_depth: "Mehr Links entfernt, als gefolgt werden soll.",
  empty: "Es wurde nichts Lesbares gefunden.",
  encrypted: "Das Dokument ist verschlüsselt. Bitte ohne Passwort speichern.",
  excluded: "Die Adresse passt auf ein Muster von „Nie Adressen wie“.",
  no_feed: "Die Adresse ist kein Feed (RSS oder Atom).",
  no_repository: "Die Adresse ist kein Repository: erwartet wird https://host/besitzer/name.",
  unknown_provider: "Die Art des Servers ist nicht bekannt. Bitte github, gitlab oder gitea wählen.",
  no_space: "Den Bereich gibt es nicht, oder der Zugang sieht ihn nicht.",
  reader_failed: "Der Leser dieser Installation ist gescheitert.",
  unauthorized: "Der Zugang wurde nicht angenommen. Bitte die Zugangsdaten erneuern.",
  unexpected_answer: "Die Antwort des Dienstes hat nicht die erwartete Form.",
  fetch_invalid_url: "Das ist keine Adresse, die abgerufen werden kann.",
  fetch_refused: "Die Adresse führt in ein Netz, aus dem nichts gelesen werden darf.",
  fetch_timed_out: "Die Seite hat nicht rechtzeitig geantwortet.",
  fetch_too_large: "Die Seite ist zu groß.",
  fetch_too_many_redirects: "Die Seite leitet zu oft weiter.",
  fetch_unreachable: "Der Server ist nicht erreichbar.",
  fetch_unresolved: "Den Namen in der Adresse gibt es nicht. Bitte die Adresse prüfen.",
  invalid_config: "Die Angaben der Quelle sind unvollständig.",
  malformed: "Die Datei ist beschädigt, oder sie ist nicht, wofür sie sich ausgibt.",
  match_limit: "Die Muster verlangen zu viele Vergleiche. Bitte weniger oder kürzere angeben.",
  nearly_same_content: "Fast derselbe Inhalt wie eine andere Seite.",
  no_archive: "Der Quelle fehlt ihr ZIP. Bitte eines hochladen.",
  no_sitemap: "Unter der Adresse ist keine Sitemap.",
  no_text_layer: "Das PDF besteht aus Bildern ohne Text.",
  not_included: "Kein Muster von „Nur Adressen wie“ passt auf die Adresse.",
  noindex: "Die Seite möchte nicht indexiert werden (noindex). Eine Quelle, die sie selbst nennt, liest sie.",
  nothing_selected: "Die Muster und noindex lassen keine einzige Seite übrig.",
  other_origin: "Die Adresse gehört zu einer anderen Website.",
  out_of_memory: "Das Dokument braucht beim Lesen zu viel Speicher.",
  page_limit: "Es sind mehr Seiten, als gelesen werden.",
  page_timed_out: "Die Seite war binnen zwei Minuten nicht zu bekommen.",
  queue_unavailable: "Die Abschnitte ließen sich gerade nicht weiterverarbeiten.",
  redirected_away: "Die Seite leitet zu einer Adresse außerhalb der Quelle weiter.",
  robots_disallowed: "Die robots.txt der Website erlaubt nicht, die Seite zu lesen.",
  robots_unavailable: "Die robots.txt der Website ist nicht zu bekommen, daher wird vorerst nichts gelesen.",
  same_address: "Dieselbe Seite wie eine andere Adresse.",
  same_content: "Derselbe Inhalt wie eine andere Seite.",
  timed_out: "Das Lesen hat zu lange gedauert.",
  too_large: "Die Datei ist zu groß.",
  too_many_entries: "Das ZIP enthält zu viele Dateien. Bitte auf mehrere verteilen.",
  too_many_pages: "Das Dokument hat zu viele Seiten.",
  unexpected: "Ein unerwarteter Fehler hat das Lesen beendet.",
  unsupported_type: "Dateien dieser Art werden nicht gelesen."
}

/** English texts that replace messages of the service which name fields differently, or describe internals. */
const english: Readonly<Record<string, string>> = {
  asset: "The address ends like a picture, a script or another file without text.",
  beyond_max_depth: "More links away than are followed.",
  excluded: "It matches a pattern of “Never addresses like”.",
  not_included: "It matches no pattern of “Only addresses like”.",
  noindex: "It asks not to be indexed (noindex). A source that names it reads it.",
  other_origin: "It belongs to another website.",
  page_limit: "More pages than one sync reads.",
  robots_disallowed: "The website's robots.txt does not allow reading it."
}

const germanStatus: Readonly<Record<string, string>> = {
  "401": " Sie verlangt eine Anmeldung, und nur öffentliche Seiten werden gelesen.",
  "403": " Sie lässt Spoke nicht hinein.",
  "404": " Bitte die Adresse prüfen.",
  "410": " Sie ist endgültig fort.",
  "429": " Sie bittet um weniger Anfragen."
}

const inGerman = (code: string, message: string): string | undefined => {
  const pages = code === "incomplete" ? /: ([^:]+)$/u.exec(message)?.[1] : undefined
  if (pages !== undefined)
    return `Die Datei ist beschädigt. Nicht vollständig lesbare Seiten: ${pages.replace("and more", "und weitere")}`
  const status = /^status_(\d+)$/.exec(code)?.[1]
  return status === undefined ? german[code] : `Die Seite antwortete ${status}.${germanStatus[status] ?? ""}`
}

interface ReadingReasonProps {
  readonly code: string | null
  readonly message: string
}

/** A reason whose code is separate, as in crawl reports. */
export const ReadingReason = ({ code, message }: ReadingReasonProps) => {
  const { language } = useLanguage()
  const translated = code === null ? undefined : language === "de" ? inGerman(code, message) : english[code]
  return translated === undefined ? <span lang="en">{message}</span> : <span>{translated}</span>
}

/** The error of a source or job, which begins with its code: `status_404: The page answered 404.` */
export const ReadingError = ({ error }: { readonly error: string }) => {
  const [, code = null, message = error] = /^([a-z0-9_]+): (.+)$/su.exec(error) ?? []
  return <ReadingReason code={code} message={message} />
}
