// The frame around all pages: navigation, the state of the feed, settings, and the page itself.

import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { openFeed, readHistory, signOut } from "./api/session.ts";
import type { Whoami } from "./api/types.ts";
import { Feed } from "./feed/feed.ts";
import { FeedContext, useFeed } from "./feed/hooks.ts";
import { useLocale } from "./locale.ts";
import { Boundary } from "./parts/boundary.tsx";
import { FeedState, RestartNote } from "./parts/feed-state.tsx";
import { Link } from "./parts/link.tsx";
import { Name } from "./parts/name.tsx";
import { Wordmark } from "./parts/newt.tsx";
import { Page } from "./parts/page.tsx";
import { Preferences } from "./parts/preferences.tsx";
import { addressOf, useRoute, type Route } from "./route.ts";
import type { Language } from "./settings.ts";
import type { Words } from "./words/en.ts";

type PageProps = { readonly query: URLSearchParams };
type PageEntry = {
  readonly load: () => Promise<ComponentType<PageProps>>;
  /** The entry of the navigation that stands for the page. */
  readonly section: keyof Words["shell"];
};

const PAGES: Readonly<Record<string, PageEntry>> = {
  "": { section: "overview", load: () => import("./pages/overview.tsx").then((page) => page.OverviewPage) },
  queues: { section: "queues", load: () => import("./pages/queues.tsx").then((page) => page.QueuesPage) },
  queue: { section: "queues", load: () => import("./pages/queue.tsx").then((page) => page.QueuePage) },
  streams: { section: "streams", load: () => import("./pages/streams.tsx").then((page) => page.StreamsPage) },
  stream: { section: "streams", load: () => import("./pages/stream.tsx").then((page) => page.StreamPage) },
  exchanges: { section: "exchanges", load: () => import("./pages/exchanges.tsx").then((page) => page.ExchangesPage) },
  exchange: { section: "exchanges", load: () => import("./pages/exchange.tsx").then((page) => page.ExchangePage) },
  connections: { section: "connections", load: () => import("./pages/connections.tsx").then((page) => page.ConnectionsPage) },
  connection: { section: "connections", load: () => import("./pages/connection.tsx").then((page) => page.ConnectionPage) },
  rpc: { section: "calls", load: () => import("./pages/traffic/calls.tsx").then((page) => page.CallsPage) },
  trace: { section: "trace", load: () => import("./pages/traffic/trace.tsx").then((page) => page.TracePage) },
  automation: { section: "automation", load: () => import("./pages/automation/automation.tsx").then((page) => page.AutomationPage) },
  gateway: { section: "gateway", load: () => import("./pages/gateway/gateway.tsx").then((page) => page.GatewayPage) },
  users: { section: "users", load: () => import("./pages/users.tsx").then((page) => page.UsersPage) },
  policies: { section: "policies", load: () => import("./pages/policies.tsx").then((page) => page.PoliciesPage) },
  configuration: { section: "configuration", load: () => import("./pages/configuration.tsx").then((page) => page.ConfigurationPage) },
  start: { section: "start", load: () => import("./pages/start.tsx").then((page) => page.StartPage) },
};

const NAVIGATION = [
  ["", "overview"],
  ["queues", "queues"],
  ["streams", "streams"],
  ["exchanges", "exchanges"],
  ["connections", "connections"],
  ["rpc", "calls"],
  ["trace", "trace"],
  ["automation", "automation"],
  ["gateway", "gateway"],
  ["users", "users"],
  ["policies", "policies"],
  ["configuration", "configuration"],
  ["start", "start"],
] as const;

/** Pages that only administrators may read. */
const ADMINISTRATION: ReadonlySet<string> = new Set(["users", "trace"]);

type Props = { user: Whoami; onLanguage: (language: Language) => void; onSignedOut: (hasEnded: boolean) => void };

export function Shell(props: Props) {
  const feed = useMemo(() => new Feed(openFeed), []);
  useEffect(() => {
    feed.start();
    const follow = (): void => feed.setHidden(document.hidden);
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      feed.stop();
    };
  }, [feed]);
  return (
    <FeedContext.Provider value={feed}>
      <Frame {...props} />
    </FeedContext.Provider>
  );
}

function Frame({ user, onLanguage, onSignedOut }: Props) {
  const { words } = useLocale();
  const route = useRoute();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const section = PAGES[route.page]?.section;
  useHistory(() => onSignedOut(true));
  useEffect(() => setMenuOpen(false), [route]);

  const leave = (): void => {
    void signOut().catch(() => undefined).then(() => onSignedOut(false));
  };

  return (
    <div class="shell">
      <a class="skip" href="#content">
        {words.skipToContent}
      </a>
      <header class={isMenuOpen ? "side open" : "side"}>
        <div class="side-head">
          <Link to={addressOf("")} class="home">
            <Wordmark />
          </Link>
          <FeedState />
          <button type="button" class="button menu-button" aria-expanded={isMenuOpen} aria-controls="menu" onClick={() => setMenuOpen(!isMenuOpen)}>
            {words.shell.menu}
          </button>
        </div>
        <div class="side-menu" id="menu">
          <nav aria-label={words.shell.navigation}>
            <ul>
              {NAVIGATION.filter(([page]) => !ADMINISTRATION.has(page) || user.tags.includes("administrator")).map(([page, name]) => (
                <li key={page}>
                  <Link to={addressOf(page)} current={section === name}>
                    {words.shell[name]}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <div class="side-foot">
            <Preferences onLanguage={onLanguage} />
            <div class="signed-in">
              <Name text={user.name} />
              <button type="button" class="button small" onClick={leave}>
                {words.shell.signOut}
              </button>
            </div>
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <RestartNote />
        <Outlet route={route} />
      </main>
    </div>
  );
}

/** Reads the past of the charts whenever a feed begins, so that a gap in the connection leaves none in them. */
function useHistory(onEnded: () => void): void {
  const feed = useFeed();
  useEffect(() => {
    if (feed.hello === null) return;
    readHistory("10m").then((history) => feed.samples.load(history), () => undefined);
  }, [feed, feed.hello]);
  useEffect(() => {
    if (feed.status.kind === "signed_out") onEnded();
  }, [feed.status.kind]);
}

function Outlet({ route }: { route: Route }) {
  const { words } = useLocale();
  const [loaded, setLoaded] = useState<{ page: string; component: ComponentType<PageProps> | null } | null>(null);
  const entry = PAGES[route.page];
  useEffect(() => {
    let isCurrent = true;
    if (entry !== undefined) {
      entry.load().then(
        (component) => isCurrent && setLoaded({ page: route.page, component }),
        () => isCurrent && setLoaded({ page: route.page, component: null }),
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [route.page]);
  if (entry === undefined) {
    return (
      <Page title={words.notFound}>
        <p>{words.notFoundText}</p>
      </Page>
    );
  }
  if (loaded === null || loaded.page !== route.page) return <p class="quiet loading">{words.loading}</p>;
  if (loaded.component === null) return <Outdated />;
  // Another object on the same page is another page: nothing of the old one may stay.
  const key = `${route.page}?${identityOf(route.query)}`;
  return (
    <Boundary key={key}>
      <loaded.component query={route.query} />
    </Boundary>
  );
}

/** The broker was replaced by one with other files while this page was open. */
function Outdated() {
  const { words } = useLocale();
  return (
    <div class="note note-warn" role="alert">
      <p>{words.failures.outdated}</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        {words.failures.reload}
      </button>
    </div>
  );
}

function identityOf(query: URLSearchParams): string {
  return ["vhost", "name", "execution"].map((key) => query.get(key) ?? "").join("\n");
}
