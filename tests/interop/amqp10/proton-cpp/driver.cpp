// Conversations of proton's C++ client with a broker, one a scenario.
//
//     driver-proton-cpp SCENARIO URL NAME
//
// A scenario ends well by returning and badly with a status of 1; waiting is always for an event.

#include <proton/codec/encoder.hpp>
#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/delivery_mode.hpp>
#include <proton/error_condition.hpp>
#include <proton/message.hpp>
#include <proton/message_id.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender_options.hpp>
#include <proton/source.hpp>
#include <proton/source_options.hpp>
#include <proton/ssl.hpp>
#include <proton/target_options.hpp>
#include <proton/tracker.hpp>
#include <proton/transfer.hpp>
#include <proton/transport.hpp>
#include <proton/types.hpp>
#include <proton/work_queue.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

const std::chrono::seconds DEADLINE(100);

// Ends the program at once: the threads of connections would go on.
[[noreturn]] void fail(const std::string& why) {
    std::cerr << why << std::endl;
    std::_Exit(1);
}

template <class A, class B> void expect(const A& came, const B& wanted) {
    if (!(came == wanted)) {
        std::ostringstream text;
        text << came << " came, and not " << wanted;
        fail(text.str());
    }
}

std::string name;
std::string url;

proton::message text(const std::string& body) {
    return proton::message(body);
}

// What has happened to a link.
struct Events {
    bool is_open = false;
    bool is_closed = false;
    bool is_drained = false;
    std::string error;
    std::deque<std::pair<proton::message, proton::delivery*>> messages;
    std::deque<enum proton::transfer::state> settled;
};

// A connection in a thread of its own.
class Client : public proton::messaging_handler {
  public:
    explicit Client(proton::connection_options options = proton::connection_options())
        : options_(options.container_id(name).handler(*this)), container_(*this, name),
          thread_([this] { container_.run(); }) {
        wait([this] { return is_open_; });
    }

    ~Client() override {
        container_.stop();
        thread_.join();
    }

    // Does something in the connection's thread, and gives what that gives.
    template <class R> R run(std::function<R()> work) {
        std::packaged_task<R()> task(work);
        std::future<R> result = task.get_future();
        connection_.work_queue().add([&task] { task(); });
        return result.get();
    }

    // Holds an object of the library until the connection has ended. Only the connection's thread may call this:
    // copies of such an object count themselves without a lock.
    template <class T> T* keep(const T& object) {
        std::shared_ptr<T> kept = std::make_shared<T>(object);
        kept_.push_back(kept);
        return kept.get();
    }

    void wait(std::function<bool()> condition) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!happened_.wait_for(lock, DEADLINE, [&] { return condition() || !error_.empty(); })) {
            fail("it hangs");
        }
        if (!error_.empty()) {
            fail(error_);
        }
    }

    // Tells whether the condition comes true in so many milliseconds.
    bool happens(std::function<bool()> condition, int ms) {
        std::unique_lock<std::mutex> lock(mutex_);
        return happened_.wait_for(lock, std::chrono::milliseconds(ms), condition);
    }

    Events& events(const std::string& link) { return links_[link]; }

    proton::connection& connection() { return connection_; }

    std::string fresh_link() { return "link-" + std::to_string(++made_); }

    void on_container_start(proton::container& container) override { container.connect(url, options_); }

    void on_connection_open(proton::connection& connection) override {
        tell([&] { connection_ = connection, is_open_ = true; });
    }

    void on_sender_open(proton::sender& sender) override { opened(sender.name()); }
    void on_receiver_open(proton::receiver& receiver) override { opened(receiver.name()); }
    void on_sender_close(proton::sender& sender) override { closed(sender.name()); }
    void on_receiver_close(proton::receiver& receiver) override { closed(receiver.name()); }
    void on_receiver_detach(proton::receiver& receiver) override { closed(receiver.name()); }

    void on_sender_error(proton::sender& sender) override {
        tell([&] { links_[sender.name()].error = sender.error().name(); });
    }

    void on_receiver_drain_finish(proton::receiver& receiver) override {
        tell([&] { links_[receiver.name()].is_drained = true; });
    }

    void on_message(proton::delivery& delivery, proton::message& message) override {
        tell([&] { links_[delivery.receiver().name()].messages.emplace_back(message, keep(delivery)); });
    }

    void on_tracker_settle(proton::tracker& tracker) override {
        tell([&] { links_[tracker.sender().name()].settled.push_back(tracker.state()); });
    }

    void on_error(const proton::error_condition& error) override {
        tell([&] { error_ = error.what(); });
    }

  private:
    void tell(std::function<void()> note) {
        std::lock_guard<std::mutex> lock(mutex_);
        note();
        happened_.notify_all();
    }

    void opened(const std::string& link) {
        tell([&] { links_[link].is_open = true; });
    }

    void closed(const std::string& link) {
        tell([&] { links_[link].is_closed = true; });
    }

    std::mutex mutex_;
    std::condition_variable happened_;
    std::map<std::string, Events> links_;
    bool is_open_ = false;
    std::string error_;
    int made_ = 0;
    std::vector<std::shared_ptr<void>> kept_;
    proton::connection connection_;
    proton::connection_options options_;
    proton::container container_;
    std::thread thread_;
};

// A link that sends.
class Sender {
  public:
    Sender(Client& client, const std::string& address, proton::sender_options options = proton::sender_options())
        : client_(client), link_(client.fresh_link()) {
        sender_ = client.run<proton::sender*>(
            [&] { return client.keep(client.connection().open_sender(address, options.name(link_))); });
        client.wait([this] { return events().is_open || events().is_closed; });
    }

    // Gives the outcome, once the broker has settled it.
    enum proton::transfer::state outcome(const proton::message& message) {
        put(message);
        client_.wait([this] { return !events().settled.empty(); });
        enum proton::transfer::state state = events().settled.front();
        events().settled.pop_front();
        return state;
    }

    void send(const proton::message& message) { expect(outcome(message), proton::transfer::ACCEPTED); }

    // Sends without waiting for an outcome.
    void put(const proton::message& message) {
        client_.run<void>([&] { sender_->send(message); });
    }

    Events& events() { return client_.events(link_); }

  private:
    Client& client_;
    std::string link_;
    proton::sender* sender_;
};

typedef std::pair<proton::message, proton::delivery*> Came;

// A link that receives; it settles, and asks for messages, only when it is told to.
class Receiver {
  public:
    Receiver(Client& client, const std::string& address, proton::source_options source = proton::source_options(),
             proton::receiver_options options = proton::receiver_options(), const std::string& link = "")
        : client_(client), link_(link.empty() ? client.fresh_link() : link) {
        options.name(link_).source(source).auto_accept(false).credit_window(0);
        receiver_ = client.run<proton::receiver*>(
            [&] { return client.keep(client.connection().open_receiver(address, options)); });
        client.wait([this] { return events().is_open; });
    }

    void credit(int count) {
        client_.run<void>([&] { receiver_->add_credit(count); });
    }

    Came next() {
        client_.wait([this] { return !events().messages.empty(); });
        Came came = events().messages.front();
        events().messages.pop_front();
        return came;
    }

    void settle(Came& came, void (proton::delivery::*how)()) {
        client_.run<void>([&] { (came.second->*how)(); });
    }

    // Takes a message that comes for credit given before.
    proton::value body() {
        Came came = next();
        settle(came, &proton::delivery::accept);
        return came.first.body();
    }

    // Asks for one message, and takes it.
    proton::value one() {
        credit(1);
        return body();
    }

    // Asks the broker for all that it has.
    std::vector<std::string> rest() {
        events().is_drained = false;
        client_.run<void>([&] { receiver_->add_credit(100), receiver_->drain(); });
        client_.wait([this] { return events().is_drained; });
        std::vector<std::string> bodies;
        while (!events().messages.empty()) {
            bodies.push_back(proton::to_string(body()));
        }
        return bodies;
    }

    void close() {
        client_.run<void>([&] { receiver_->close(); });
        client_.wait([this] { return events().is_closed; });
    }

    void detach() {
        client_.run<void>([&] { receiver_->detach(); });
        client_.wait([this] { return events().is_closed; });
    }

    std::string address() {
        return client_.run<std::string>([&] { return receiver_->source().address(); });
    }

    bool is_silent(int ms) {
        return !client_.happens([this] { return !events().messages.empty(); }, ms);
    }

    Events& events() { return client_.events(link_); }

  private:
    Client& client_;
    std::string link_;
    proton::receiver* receiver_;
};

void expect_all(const std::vector<std::string>& came, const std::vector<std::string>& wanted) {
    std::ostringstream left, right;
    std::copy(came.begin(), came.end(), std::ostream_iterator<std::string>(left, ", "));
    std::copy(wanted.begin(), wanted.end(), std::ostream_iterator<std::string>(right, ", "));
    expect(left.str(), right.str());
}

void settlement() {
    Client client;
    Sender at_most_once(client, name, proton::sender_options().delivery_mode(proton::delivery_mode::AT_MOST_ONCE));
    Sender at_least_once(client, name);
    at_most_once.put(text("settled"));
    at_least_once.send(text("unsettled"));
    Receiver receiver(client, name);
    receiver.credit(2);
    for (std::string body : {"settled", "unsettled"}) {
        Came came = receiver.next();
        expect(proton::to_string(came.first.body()), body);
        receiver.settle(came, &proton::delivery::accept);
    }
    receiver.close();
    at_least_once.send(text("for one who does not answer"));
    Receiver forgetful(client, name, proton::source_options(),
                       proton::receiver_options().delivery_mode(proton::delivery_mode::AT_MOST_ONCE));
    forgetful.credit(1);
    Came came = forgetful.next();
    expect(client.run<bool>([&] { return came.second->settled(); }), true);
    forgetful.close();
    expect_all(Receiver(client, name).rest(), {});
}

void outcomes() {
    Client client;
    Sender sender(client, name);
    for (const char* body : {"released", "modified", "rejected"}) {
        sender.send(text(body));
    }
    Receiver receiver(client, name);
    receiver.credit(3);
    std::vector<Came> came;
    while (came.size() < 3) {
        came.push_back(receiver.next());
    }
    receiver.settle(came[0], &proton::delivery::release);
    receiver.settle(came[1], &proton::delivery::modify);
    receiver.settle(came[2], &proton::delivery::reject);
    // This client cannot say that a delivery has failed. The library sends credit and outcomes in an order of its own.
    receiver.credit(2);
    std::set<std::string> again;
    while (again.size() < 2) {
        Came came = receiver.next();
        again.insert(proton::to_string(came.first.body()));
        expect(came.first.delivery_count(), 0u);
        receiver.settle(came, &proton::delivery::accept);
    }
    expect(again == std::set<std::string>{"released", "modified"}, true);
    expect_all(receiver.rest(), {});
}

void refusal() {
    Client client;
    Sender sender(client, name);
    sender.send(text("the only one"));
    expect(sender.outcome(text("too much")), proton::transfer::REJECTED);
}

void credit_and_drain() {
    Client client;
    Sender sender(client, name);
    for (int number = 1; number <= 5; ++number) {
        sender.send(proton::message(number));
    }
    Receiver receiver(client, name);
    receiver.credit(3);
    for (int number = 1; number <= 3; ++number) {
        expect(receiver.body(), proton::value(number));
    }
    expect_all(receiver.rest(), {"4", "5"});
    sender.send(proton::message(6));
    expect(Receiver(client, name).one(), proton::value(6));
    expect(receiver.events().messages.size(), 0u);
}

void carry(Client& client, size_t size) {
    proton::binary body(size);
    for (size_t index = 0; index < size; ++index) {
        body[index] = static_cast<uint8_t>(index % 251);
    }
    proton::message message(body);
    message.inferred(true);
    Sender(client, name).send(message);
    expect(proton::get<proton::binary>(Receiver(client, name).one()) == body, true);
}

void large_message() {
    Client client;
    carry(client, 3 << 20);
}

void small_frames() {
    Client client(proton::connection_options().max_frame_size(512));
    carry(client, 200000);
}

void dynamic_node() {
    Client asking, answering;
    Receiver replies(asking, "", proton::source_options().dynamic(true));
    proton::message request("request");
    request.reply_to(replies.address());
    request.id("id");
    Sender(asking, name).send(request);
    Receiver requests(answering, name);
    requests.credit(1);
    Came came = requests.next();
    requests.settle(came, &proton::delivery::accept);
    proton::message reply("answer");
    reply.to(came.first.reply_to());
    reply.correlation_id(came.first.id());
    Sender(answering, "", proton::sender_options().target(proton::target_options().anonymous(true))).send(reply);
    replies.credit(1);
    Came answer = replies.next();
    expect(proton::to_string(answer.first.body()), "answer");
    expect(answer.first.correlation_id(), proton::message_id("id"));
}

void anonymous_relay() {
    Client client;
    Sender sender(client, "", proton::sender_options().target(proton::target_options().anonymous(true)));
    for (std::string queue : {name + ".a", name + ".b"}) {
        proton::message message(queue);
        message.to(queue);
        sender.send(message);
    }
    for (std::string queue : {name + ".b", name + ".a"}) {
        expect_all(Receiver(client, queue).rest(), {queue});
    }
}

void selector() {
    Client client;
    Sender sender(client, name);
    for (int size : {5, 50, 500}) {
        for (std::string colour : {"red", "blue"}) {
            proton::message message(colour + " " + std::to_string(size));
            message.properties().put("size", size);
            message.properties().put("colour", colour);
            sender.send(message);
        }
    }
    proton::source::filter_map filters;
    proton::value filter;
    proton::codec::encoder encoder(filter);
    encoder << proton::codec::start::described() << proton::symbol("apache.org:selector-filter:string")
            << "colour = 'red' AND size > 10" << proton::codec::finish();
    filters.put("selector", filter);
    expect_all(Receiver(client, name, proton::source_options().filters(filters)).rest(), {"red 50", "red 500"});
    expect_all(Receiver(client, name).rest(), {"red 5", "blue 5", "blue 50", "blue 500"});
}

void browse() {
    Client client;
    Sender sender(client, name);
    for (int number = 1; number <= 3; ++number) {
        sender.send(proton::message(number));
    }
    for (int time = 0; time < 2; ++time) {
        proton::source_options source;
        source.distribution_mode(proton::source::COPY);
        expect_all(Receiver(client, name, source).rest(), {"1", "2", "3"});
    }
    expect_all(Receiver(client, name).rest(), {"1", "2", "3"});
}

proton::source_options durable() {
    return proton::source_options()
        .durability_mode(proton::source::UNSETTLED_STATE)
        .expiry_policy(proton::source::NEVER);
}

void durable_subscription() {
    std::string topic = "topic://" + name;
    {
        Client client;
        Receiver(client, topic, durable(), proton::receiver_options(), "subscription").detach();
    }
    Client other;
    Sender sender(other, topic);
    sender.send(text("missed"));
    {
        Client client;
        Receiver receiver(client, topic, durable(), proton::receiver_options(), "subscription");
        sender.send(text("live"));
        expect_all(receiver.rest(), {"missed", "live"});
        receiver.close();
    }
    sender.send(text("for nobody"));
    Client client;
    expect_all(Receiver(client, topic, durable(), proton::receiver_options(), "subscription").rest(), {});
}

void shared_subscription() {
    std::string topic = "topic://" + name;
    Client one, other, third;
    proton::source_options source;
    source.capabilities({"shared", "global"});
    Receiver first(one, topic, source, proton::receiver_options(), name + "|0");
    Receiver second(other, topic, source, proton::receiver_options(), name + "|1");
    first.credit(5);
    second.credit(5);
    Sender sender(third, topic);
    std::vector<std::string> sent, came;
    for (int number = 0; number < 10; ++number) {
        sent.push_back(std::to_string(number));
        sender.send(proton::message(number));
    }
    for (int number = 0; number < 10; ++number) {
        came.push_back(proton::to_string(number % 2 == 0 ? first.body() : second.body()));
    }
    std::sort(came.begin(), came.end());
    expect_all(came, sent);
}

void delay() {
    Client client;
    Sender sender(client, name);
    proton::message delayed("delayed");
    delayed.message_annotations().put("x-opt-delivery-delay", int64_t(500));
    sender.send(delayed);
    sender.send(text("at once"));
    Receiver receiver(client, name);
    expect(proton::to_string(receiver.one()), "at once");
    expect(proton::to_string(receiver.one()), "delayed");
}

void expiry() {
    Client client;
    Sender sender(client, name);
    proton::message expired("expired");
    expired.expiry_time(proton::timestamp(1000));
    sender.send(expired);
    proton::message fresh("fresh");
    fresh.ttl(proton::duration(600000));
    sender.send(fresh);
    expect_all(Receiver(client, name).rest(), {"fresh"});
}

void priorities() {
    Client client;
    Sender sender(client, name);
    for (int priority = 0; priority <= 9; ++priority) {
        proton::message message(priority);
        message.priority(static_cast<uint8_t>(priority));
        sender.send(message);
    }
    expect_all(Receiver(client, name).rest(), {"9", "8", "7", "6", "5", "4", "3", "2", "1", "0"});
}

void types() {
    Client client;
    Sender sender(client, name);
    Receiver receiver(client, name);
    std::map<std::string, proton::scalar> properties = {
        {"boolean", true},
        {"int", int32_t(-3)},
        {"long", int64_t(-4000000000000000000)},
        {"double", 0.1},
        {"string", std::string("Größe 🐟")},
        {"uuid", proton::uuid::random()},
        {"null", proton::null()},
    };
    std::vector<proton::value> list = {1, "two", proton::value(), std::map<std::string, bool>({{"k", true}})};
    for (proton::value body : {proton::value("text"), proton::value(-7), proton::value(uint64_t(-1)),
                               proton::value(proton::binary("\1\2")), proton::value(list)}) {
        proton::message message(body);
        for (auto& property : properties) {
            message.properties().put(property.first, property.second);
        }
        sender.send(message);
        receiver.credit(1);
        Came came = receiver.next();
        receiver.settle(came, &proton::delivery::accept);
        // Lists are never done comparing.
        expect(proton::to_string(came.first.body()), proton::to_string(body));
        expect(came.first.properties().size(), properties.size());
        for (auto& property : properties) {
            expect(came.first.properties().get(property.first), property.second);
        }
    }
}

void idle_time_out() {
    Client client(proton::connection_options().idle_timeout(proton::duration(1000)));
    Receiver receiver(client, name);
    receiver.credit(1);
    expect(receiver.is_silent(2500), true);
    Sender(client, name).send(text("m"));
    expect(proton::to_string(receiver.body()), "m");
}

void not_found() {
    Client client;
    Sender refused(client, "/exchanges/" + name + "/key");
    client.wait([&] { return refused.events().is_closed; });
    expect(refused.events().error, "amqp:not-found");
    Sender(client, name).send(text("m"));
}

void tls() {
    proton::ssl_client_options trust(std::getenv("SSL_CERT_FILE"), proton::ssl::VERIFY_PEER_NAME);
    Client client(proton::connection_options().ssl_client_options(trust));
    Sender(client, name).send(text("m"));
    expect(proton::to_string(Receiver(client, name).one()), "m");
}

const std::map<std::string, void (*)()> SCENARIOS = {
    {"settlement", settlement},
    {"outcomes", outcomes},
    {"refusal", refusal},
    {"credit_and_drain", credit_and_drain},
    {"large_message", large_message},
    {"small_frames", small_frames},
    {"dynamic_node", dynamic_node},
    {"anonymous_relay", anonymous_relay},
    {"selector", selector},
    {"browse", browse},
    {"durable_subscription", durable_subscription},
    {"shared_subscription", shared_subscription},
    {"delay", delay},
    {"expiry", expiry},
    {"priorities", priorities},
    {"types", types},
    {"idle_time_out", idle_time_out},
    {"not_found", not_found},
    {"tls", tls},
};

} // namespace

int main(int, char** words) {
    url = words[2];
    name = words[3];
    try {
        SCENARIOS.at(words[1])();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}
